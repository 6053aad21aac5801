-- +goose Up
-- What has ended needs no secret. The others are encrypted when they are written next.
UPDATE workspaces SET secret = '' WHERE state IN ('stopped', 'failed');
UPDATE deployments SET secret = '' WHERE state IN ('stopped', 'failed');

-- Where a token was last used from; empty: not known.
ALTER TABLE access_tokens ADD COLUMN last_used_from TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE access_tokens DROP COLUMN last_used_from;
