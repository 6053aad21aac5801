-- +goose Up
-- The history of each run.
CREATE TABLE run_events (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id     INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    project_id INTEGER NOT NULL REFERENCES projects (id),
    at         DATETIME NOT NULL,
    state      TEXT NOT NULL,
    message    TEXT NOT NULL
);
CREATE INDEX run_events_run ON run_events (run_id, id);
-- What the rules of the shared directories gave the member of a run when it started;
-- empty: unknown.
ALTER TABLE runs ADD COLUMN granted TEXT NOT NULL DEFAULT '[]';

-- +goose Down
ALTER TABLE runs DROP COLUMN granted;
DROP TABLE run_events;
