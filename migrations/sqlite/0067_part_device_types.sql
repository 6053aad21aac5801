-- +goose Up
-- On what the library of a part computes.
ALTER TABLE deployment_parts ADD COLUMN device_type TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE deployment_parts DROP COLUMN device_type;
