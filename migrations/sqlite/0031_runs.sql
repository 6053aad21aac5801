-- +goose Up
-- Commands that hold a share while they last; the claim of each is with its holder.
CREATE TABLE runs (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    holder_id          INTEGER NOT NULL UNIQUE REFERENCES holders (id),
    project_id         INTEGER NOT NULL REFERENCES projects (id),
    member_id          INTEGER NOT NULL REFERENCES members (id),
    user_id            INTEGER NOT NULL REFERENCES users (id),
    environment_id     INTEGER NOT NULL REFERENCES environments (id),
    command            TEXT NOT NULL,
    state              TEXT NOT NULL CHECK (state IN ('queued', 'starting', 'running', 'stopping', 'ended')),
    target             TEXT NOT NULL DEFAULT '[]',
    time_limit_seconds INTEGER NOT NULL DEFAULT 0 CHECK (time_limit_seconds >= 0),
    exit_code          INTEGER,
    runtime_state      BLOB,
    limits             TEXT NOT NULL DEFAULT '[]',
    version            INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX runs_project ON runs (project_id, id);
CREATE INDEX runs_user ON runs (user_id, id);
CREATE INDEX runs_live ON runs (state, id) WHERE state <> 'ended';

-- +goose Down
-- What else is of a holder goes with its run; an older server would take it for a workspace's.
DELETE FROM shares WHERE holder_id IN (SELECT id FROM holders WHERE kind = 'run');
DELETE FROM decisions WHERE holder_id IN (SELECT id FROM holders WHERE kind = 'run');
DROP TABLE runs;
DELETE FROM holders WHERE kind = 'run';
