-- +goose Up
-- A deployment whose model has changed is followed by another one, which takes its place.
ALTER TABLE deployments ADD COLUMN first_id INTEGER REFERENCES deployments (id);
-- What was requested, so that the update is planned for the same.
ALTER TABLE deployments ADD COLUMN request TEXT NOT NULL DEFAULT '{}';
ALTER TABLE deployments ADD COLUMN manual_updates BOOLEAN NOT NULL DEFAULT FALSE;
-- The state of the model's files: those that it serves, and those of which an update has failed.
ALTER TABLE deployments ADD COLUMN files TEXT NOT NULL DEFAULT '';
ALTER TABLE deployments ADD COLUMN tried_files TEXT NOT NULL DEFAULT '';
-- Until when a deployment that was replaced finishes its requests.
ALTER TABLE deployments ADD COLUMN drains_until DATETIME;
CREATE INDEX deployments_first ON deployments (first_id);

-- +goose Down
DROP INDEX deployments_first;
ALTER TABLE deployments DROP COLUMN drains_until;
ALTER TABLE deployments DROP COLUMN tried_files;
ALTER TABLE deployments DROP COLUMN files;
ALTER TABLE deployments DROP COLUMN manual_updates;
ALTER TABLE deployments DROP COLUMN request;
ALTER TABLE deployments DROP COLUMN first_id;
