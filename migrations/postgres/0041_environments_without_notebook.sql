-- +goose Up
-- An environment without a notebook server is for runs and deployments, not for workspaces.
ALTER TABLE environments ADD COLUMN no_notebook BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE environments DROP COLUMN no_notebook;
