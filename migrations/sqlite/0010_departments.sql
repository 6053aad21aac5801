-- +goose Up
-- Where people work. One that still has people cannot be deleted.
CREATE TABLE departments (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL DEFAULT 1,
    created_at DATETIME NOT NULL,
    CONSTRAINT departments_name UNIQUE (name)
);
ALTER TABLE users ADD COLUMN department_id INTEGER REFERENCES departments (id);
CREATE INDEX users_department ON users (department_id, id);

-- The day on which a member joined, at midnight UTC. The default is for
-- members that are there already.
ALTER TABLE members ADD COLUMN joined_at DATETIME NOT NULL DEFAULT '1970-01-01 00:00:00+00:00';
UPDATE members SET joined_at = date(created_at) || ' 00:00:00+00:00';

-- +goose Down
ALTER TABLE members DROP COLUMN joined_at;
DROP INDEX users_department;
ALTER TABLE users DROP COLUMN department_id;
DROP TABLE departments;
