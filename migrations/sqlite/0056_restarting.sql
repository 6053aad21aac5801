-- +goose Up
-- A starting workspace whose former programs are stopped first.
ALTER TABLE workspaces ADD COLUMN restarting BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE workspaces DROP COLUMN restarting;
