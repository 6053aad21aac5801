-- +goose Up
-- Who may do what with a path of a project. A name of a file can have any byte.
CREATE TABLE file_rules (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    path       BLOB NOT NULL,
    subject    TEXT NOT NULL CHECK (subject IN ('member', 'role', 'project', 'everyone')),
    subject_id INTEGER NOT NULL DEFAULT 0, -- of the member or role
    access     TEXT NOT NULL CHECK (access IN ('none', 'read', 'write')),
    download   TEXT NOT NULL CHECK (download IN ('inherit', 'allow', 'deny')),
    changed_at DATETIME NOT NULL,
    CHECK ((subject_id <> 0) = (subject IN ('member', 'role')))
);
CREATE UNIQUE INDEX file_rules_path ON file_rules (project_id, path, subject, subject_id);
CREATE INDEX file_rules_project ON file_rules (project_id, id);

-- +goose Down
DROP TABLE file_rules;
