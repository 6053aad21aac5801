-- +goose Up
-- What has ended needs no secret. The others are encrypted when they are written next.
UPDATE workspaces SET secret = '' WHERE state IN ('stopped', 'failed');
UPDATE deployments SET secret = '' WHERE state IN ('stopped', 'failed');

-- +goose Down
