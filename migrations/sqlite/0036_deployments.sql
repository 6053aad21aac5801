-- +goose Up
-- Models that are served; the claim of each is with its holder.
CREATE TABLE deployments (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    holder_id      INTEGER NOT NULL UNIQUE REFERENCES holders (id),
    project_id     INTEGER NOT NULL REFERENCES projects (id),
    member_id      INTEGER NOT NULL REFERENCES members (id),
    user_id        INTEGER NOT NULL REFERENCES users (id),
    environment_id INTEGER NOT NULL REFERENCES environments (id),
    path           TEXT NOT NULL,
    service_type   TEXT NOT NULL,
    plan           TEXT NOT NULL,
    batch          INTEGER NOT NULL CHECK (batch > 0),
    context        INTEGER NOT NULL CHECK (context > 0),
    hidden         INTEGER NOT NULL CHECK (hidden > 0),
    vocabulary     INTEGER NOT NULL CHECK (vocabulary > 0),
    text_prompts   BOOLEAN NOT NULL,
    secret         TEXT NOT NULL,
    state          TEXT NOT NULL CHECK (state IN ('deploying', 'serving', 'stopping', 'stopped', 'failed')),
    failed         BOOLEAN NOT NULL DEFAULT FALSE,
    target         TEXT NOT NULL DEFAULT '[]',
    version        INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX deployments_project ON deployments (project_id, id);
CREATE INDEX deployments_user ON deployments (user_id, id);
CREATE INDEX deployments_live ON deployments (state, id) WHERE state NOT IN ('stopped', 'failed');
-- The parts of their models, each with a process on one device.
CREATE TABLE deployment_parts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    deployment_id INTEGER NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
    project_id    INTEGER NOT NULL REFERENCES projects (id),
    number        INTEGER NOT NULL,
    file          TEXT NOT NULL DEFAULT '',
    size          INTEGER NOT NULL DEFAULT 0,
    state         TEXT NOT NULL CHECK (state IN ('waiting', 'loading', 'ready', 'ended')),
    progress      INTEGER NOT NULL DEFAULT 0,
    library       TEXT NOT NULL DEFAULT '',
    restarts      INTEGER NOT NULL DEFAULT 0,
    failures      INTEGER NOT NULL DEFAULT 0,
    runtime_state BLOB,
    version       INTEGER NOT NULL DEFAULT 1,
    UNIQUE (deployment_id, number)
);
-- The history of each deployment.
CREATE TABLE deployment_events (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    deployment_id INTEGER NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
    project_id    INTEGER NOT NULL REFERENCES projects (id),
    at            DATETIME NOT NULL,
    state         TEXT NOT NULL,
    message       TEXT NOT NULL
);
CREATE INDEX deployment_events_deployment ON deployment_events (deployment_id, id);

-- +goose Down
-- What else is of a holder goes with its deployment; an older server would take it for a workspace's.
DELETE FROM shares WHERE holder_id IN (SELECT id FROM holders WHERE kind = 'deployment');
DELETE FROM decisions WHERE holder_id IN (SELECT id FROM holders WHERE kind = 'deployment');
DROP TABLE deployment_events;
DROP TABLE deployment_parts;
DROP TABLE deployments;
DELETE FROM holders WHERE kind = 'deployment';
