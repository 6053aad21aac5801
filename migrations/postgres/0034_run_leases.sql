-- +goose Up
-- The workspace whose environment a run has. A run with a lease ends when nobody has renewed
-- it for lease_seconds; when it last worked decides how long it may stay idle.
ALTER TABLE runs ADD COLUMN workspace_id BIGINT REFERENCES workspaces (id);
ALTER TABLE runs ADD COLUMN lease_seconds BIGINT NOT NULL DEFAULT 0 CHECK (lease_seconds >= 0);
ALTER TABLE runs ADD COLUMN renewed_at TIMESTAMPTZ;
ALTER TABLE runs ADD COLUMN worked_at TIMESTAMPTZ;
ALTER TABLE runs ADD COLUMN reminded_at TIMESTAMPTZ;
CREATE INDEX runs_workspace ON runs (workspace_id, id);

-- +goose Down
DROP INDEX runs_workspace;
ALTER TABLE runs DROP COLUMN reminded_at;
ALTER TABLE runs DROP COLUMN worked_at;
ALTER TABLE runs DROP COLUMN renewed_at;
ALTER TABLE runs DROP COLUMN lease_seconds;
ALTER TABLE runs DROP COLUMN workspace_id;
