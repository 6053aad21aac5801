-- +goose Up
-- How members of a project split models of an architecture.
CREATE TABLE split_presets (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id   INTEGER NOT NULL REFERENCES projects (id),
    service_type TEXT NOT NULL,
    architecture TEXT NOT NULL,
    split        TEXT NOT NULL CHECK (split IN ('layers', 'heads', 'experts')),
    combine      TEXT NOT NULL CHECK (combine IN ('pass_on', 'concatenate', 'sum', 'vote')),
    cuts         TEXT NOT NULL,
    user_id      INTEGER NOT NULL REFERENCES users (id),
    created_at   DATETIME NOT NULL,
    CONSTRAINT split_presets_service_type UNIQUE (project_id, service_type)
);

-- +goose Down
DROP TABLE split_presets;
