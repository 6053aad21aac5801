-- +goose Up
-- To which machines what runs in a project may open connections.
ALTER TABLE projects ADD COLUMN outgoing_access TEXT NOT NULL DEFAULT 'all' CHECK (outgoing_access IN ('all', 'none', 'listed'));
ALTER TABLE projects ADD COLUMN outgoing_hosts TEXT NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE projects DROP COLUMN outgoing_hosts;
ALTER TABLE projects DROP COLUMN outgoing_access;
