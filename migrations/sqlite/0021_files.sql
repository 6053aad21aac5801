-- +goose Up
-- The bytes that the files of a project use, and those that are reserved by
-- operations in progress.
CREATE TABLE storage_use (
    project_id  INTEGER PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
    used        INTEGER NOT NULL DEFAULT 0 CHECK (used >= 0),
    reserved    INTEGER NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    measured_at DATETIME
);

-- An operation on files in progress: its intent, for the time after a crash.
CREATE TABLE file_operations (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    user_id    INTEGER REFERENCES users (id),
    kind       TEXT NOT NULL,
    path       BLOB NOT NULL,
    target     BLOB NOT NULL, -- of a move
    reserved   INTEGER NOT NULL DEFAULT 0,
    inode      INTEGER NOT NULL DEFAULT 0, -- of what it puts at its path; 0 before
    item_id    INTEGER NOT NULL DEFAULT 0, -- in the trash, that it restores
    expires_at DATETIME NOT NULL
);
CREATE INDEX file_operations_expires_at ON file_operations (expires_at);
CREATE INDEX file_operations_project ON file_operations (project_id);
CREATE INDEX file_operations_user ON file_operations (user_id);

-- What was deleted or overwritten, by the id of the operation.
CREATE TABLE trashed_files (
    id         INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    user_id    INTEGER REFERENCES users (id),
    path       BLOB NOT NULL,
    directory  BOOLEAN NOT NULL,
    bytes      INTEGER NOT NULL,
    at         DATETIME NOT NULL
);
CREATE INDEX trashed_files_project ON trashed_files (project_id, id);
CREATE INDEX trashed_files_at ON trashed_files (at);
CREATE INDEX trashed_files_user ON trashed_files (user_id);

CREATE TABLE file_versions (
    id         INTEGER PRIMARY KEY,
    project_id INTEGER NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    user_id    INTEGER REFERENCES users (id),
    path       BLOB NOT NULL,
    bytes      INTEGER NOT NULL,
    at         DATETIME NOT NULL
);
CREATE INDEX file_versions_path ON file_versions (project_id, path, id);
CREATE INDEX file_versions_at ON file_versions (at);
CREATE INDEX file_versions_user ON file_versions (user_id);

-- +goose Down
DROP TABLE file_versions;
DROP TABLE trashed_files;
DROP TABLE file_operations;
DROP TABLE storage_use;
