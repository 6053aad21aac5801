-- +goose Up
-- A client waits for the end of the run, and renews its lease as long as it does.
ALTER TABLE runs ADD COLUMN attached BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE runs DROP COLUMN attached;
