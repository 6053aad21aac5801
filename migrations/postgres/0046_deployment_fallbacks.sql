-- +goose Up
-- The deployment that has ended for an update, and is deployed again if the update fails.
ALTER TABLE deployments ADD COLUMN fallback_id BIGINT REFERENCES deployments (id);
-- The deployment that is deployed again, whose parts this one has.
ALTER TABLE deployments ADD COLUMN restored_id BIGINT REFERENCES deployments (id);

-- +goose Down
ALTER TABLE deployments DROP COLUMN restored_id;
ALTER TABLE deployments DROP COLUMN fallback_id;
