-- +goose Up
-- What the rules of the shared directories gave the member of a workspace when it started;
-- empty: unknown.
ALTER TABLE workspaces ADD COLUMN granted TEXT NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE workspaces DROP COLUMN granted;
