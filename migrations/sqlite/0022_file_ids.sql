-- +goose Up
-- The first of the IDs that members and projects have on the file system; no row: all
-- files have one owner.
CREATE TABLE file_ids (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    first_id INTEGER NOT NULL
);

-- Projects whose files still have the one owner of before.
CREATE TABLE file_takeovers (
    project_id INTEGER PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
    begun_at   DATETIME, -- from then on, workspaces start with the new IDs
    cursor     BLOB NOT NULL DEFAULT x'' -- the last directory that is done
);

-- A digest of the mounts with which the workspace was started; empty: unknown.
ALTER TABLE workspaces ADD COLUMN mounts TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE workspaces DROP COLUMN mounts;
DROP TABLE file_takeovers;
DROP TABLE file_ids;
