-- +goose Up
-- Whose a session is, and where it began, so that people can list and end theirs. Sessions that began before are listed
-- when they are next written.
ALTER TABLE sessions ADD COLUMN user_id BIGINT;
ALTER TABLE sessions ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN user_agent TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN began_at TIMESTAMPTZ;
ALTER TABLE sessions ADD COLUMN used_at TIMESTAMPTZ;
CREATE INDEX sessions_user ON sessions (user_id);

-- +goose Down
DROP INDEX sessions_user;
ALTER TABLE sessions DROP COLUMN used_at;
ALTER TABLE sessions DROP COLUMN began_at;
ALTER TABLE sessions DROP COLUMN user_agent;
ALTER TABLE sessions DROP COLUMN address;
ALTER TABLE sessions DROP COLUMN generation;
ALTER TABLE sessions DROP COLUMN user_id;
