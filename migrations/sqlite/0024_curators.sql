-- +goose Up
-- Who may write in a public directory: a user in any project, or the members of a
-- project.
CREATE TABLE curators (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    directory  TEXT NOT NULL,
    user_id    INTEGER REFERENCES users (id) ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects (id) ON DELETE CASCADE,
    created_at DATETIME NOT NULL,
    CHECK ((user_id IS NULL) <> (project_id IS NULL))
);
CREATE UNIQUE INDEX curators_user ON curators (user_id, directory);
CREATE UNIQUE INDEX curators_project ON curators (project_id, directory);

-- +goose Down
DROP TABLE curators;
