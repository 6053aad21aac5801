-- +goose Up
-- How the update of a deployment takes its place: beside it, or after it.
ALTER TABLE deployments ADD COLUMN update_strategy TEXT NOT NULL DEFAULT 'rolling';
-- A deployment that stops for its update.
ALTER TABLE deployments ADD COLUMN updating BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE deployments DROP COLUMN updating;
ALTER TABLE deployments DROP COLUMN update_strategy;
