-- +goose Up
-- What the rules of the shared directories gave the member at the start; empty: unknown.
ALTER TABLE workspaces RENAME COLUMN granted TO file_access;
ALTER TABLE runs RENAME COLUMN granted TO file_access;

-- +goose Down
ALTER TABLE runs RENAME COLUMN file_access TO granted;
ALTER TABLE workspaces RENAME COLUMN file_access TO granted;
