-- +goose Up
-- Why the sharing mode that is wanted is not in effect, as the agent says.
ALTER TABLE devices ADD COLUMN sharing_error TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE devices DROP COLUMN sharing_error;
