-- +goose Up
-- Of several servers one leads what must be done once. The epoch counts the
-- leaders: whoever acts as an older one is refused.
CREATE TABLE leaders (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    epoch      BIGINT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);

-- The serial number before the present one: who still shows it has a copy.
ALTER TABLE agents ADD COLUMN last_serial TEXT NOT NULL DEFAULT '';

-- Whether the owner was named or is only who issued the code, and when a use
-- of the code was first refused.
ALTER TABLE authorizations ADD COLUMN owner_given BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE authorizations ADD COLUMN refused_at TIMESTAMPTZ;

-- People read the newest decisions of their own projects.
CREATE INDEX decisions_project ON decisions (project_id, id);

-- +goose Down
DROP INDEX decisions_project;
ALTER TABLE authorizations DROP COLUMN refused_at;
ALTER TABLE authorizations DROP COLUMN owner_given;
ALTER TABLE agents DROP COLUMN last_serial;
DROP TABLE leaders;
