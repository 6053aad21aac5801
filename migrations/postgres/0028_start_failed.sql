-- +goose Up
-- A workspace that is stopped because its start failed ends as failed.
ALTER TABLE workspaces ADD COLUMN start_failed BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE workspaces SET start_failed = TRUE, ended_at = NULL WHERE state = 'stopping' AND ended_at IS NOT NULL;

-- +goose Down
UPDATE workspaces SET ended_at = requested_at WHERE state = 'stopping' AND start_failed;
ALTER TABLE workspaces DROP COLUMN start_failed;
