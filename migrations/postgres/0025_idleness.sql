-- +goose Up
-- When a workspace last worked, what showed it, and when its user was last reminded
-- that it will be stopped. NULL in worked_at: not known.
ALTER TABLE workspaces ADD COLUMN worked_at TIMESTAMPTZ;
ALTER TABLE workspaces ADD COLUMN work_signal TEXT NOT NULL DEFAULT '';
ALTER TABLE workspaces ADD COLUMN reminded_at TIMESTAMPTZ;

-- +goose Down
ALTER TABLE workspaces DROP COLUMN reminded_at;
ALTER TABLE workspaces DROP COLUMN work_signal;
ALTER TABLE workspaces DROP COLUMN worked_at;
