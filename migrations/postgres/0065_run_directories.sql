-- +goose Up
-- The directory in which the command of a run begins; empty: the home directory.
ALTER TABLE runs ADD COLUMN directory TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE runs DROP COLUMN directory;
