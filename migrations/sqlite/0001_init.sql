-- +goose Up
CREATE TABLE users (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    email         TEXT NOT NULL,
    name          TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    admin         BOOLEAN NOT NULL DEFAULT FALSE,
    disabled      BOOLEAN NOT NULL DEFAULT FALSE,
    session_epoch INTEGER NOT NULL DEFAULT 1,
    version       INTEGER NOT NULL DEFAULT 1,
    created_at    DATETIME NOT NULL,
    CONSTRAINT users_email UNIQUE (email)
);

CREATE TABLE sessions (
    token      TEXT PRIMARY KEY,
    data       BLOB NOT NULL,
    expires_at DATETIME NOT NULL
);
CREATE INDEX sessions_expires_at ON sessions (expires_at);

CREATE TABLE access_tokens (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id      INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    hash         TEXT NOT NULL,
    expires_at   DATETIME NOT NULL,
    last_used_at DATETIME,
    created_at   DATETIME NOT NULL,
    CONSTRAINT access_tokens_hash UNIQUE (hash),
    CONSTRAINT access_tokens_name UNIQUE (user_id, name)
);

CREATE TABLE projects (
    id                   INTEGER PRIMARY KEY AUTOINCREMENT,
    name                 TEXT NOT NULL,
    description          TEXT NOT NULL DEFAULT '',
    quota_gpu_cores      INTEGER NOT NULL CHECK (quota_gpu_cores >= 0),
    quota_gpu_memory_mib INTEGER NOT NULL CHECK (quota_gpu_memory_mib >= 0),
    quota_cpu_milli      INTEGER NOT NULL CHECK (quota_cpu_milli >= 0),
    quota_memory_mib     INTEGER NOT NULL CHECK (quota_memory_mib >= 0),
    quota_storage_mib    INTEGER NOT NULL CHECK (quota_storage_mib >= 0),
    starts_at            DATETIME NOT NULL,
    ends_at              DATETIME,
    launch               TEXT NOT NULL DEFAULT '{}',
    version              INTEGER NOT NULL DEFAULT 1,
    created_at           DATETIME NOT NULL,
    CONSTRAINT projects_name UNIQUE (name)
);

CREATE TABLE roles (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id          INTEGER NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name                TEXT NOT NULL,
    permission          TEXT NOT NULL CHECK (permission IN ('manager', 'member')),
    peak_gpu_cores      INTEGER NOT NULL CHECK (peak_gpu_cores >= 0),
    peak_gpu_memory_mib INTEGER NOT NULL CHECK (peak_gpu_memory_mib >= 0),
    peak_cpu_milli      INTEGER NOT NULL CHECK (peak_cpu_milli >= 0),
    peak_memory_mib     INTEGER NOT NULL CHECK (peak_memory_mib >= 0),
    peak_storage_mib    INTEGER NOT NULL CHECK (peak_storage_mib >= 0),
    version             INTEGER NOT NULL DEFAULT 1,
    created_at          DATETIME NOT NULL,
    CONSTRAINT roles_name UNIQUE (project_id, name),
    CONSTRAINT roles_of_project UNIQUE (project_id, id)
);

CREATE TABLE members (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    user_id    INTEGER NOT NULL REFERENCES users (id),
    role_id    INTEGER, -- NULL once removed and the role is deleted
    until      DATETIME,
    removed_at DATETIME,
    version    INTEGER NOT NULL DEFAULT 1,
    created_at DATETIME NOT NULL,
    CONSTRAINT members_user UNIQUE (project_id, user_id),
    CONSTRAINT members_role FOREIGN KEY (project_id, role_id) REFERENCES roles (project_id, id)
);
CREATE INDEX members_user_id ON members (user_id);

CREATE TABLE environments (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    name             TEXT NOT NULL,
    discovered_key   TEXT,
    language         TEXT NOT NULL,
    language_version TEXT NOT NULL,
    versions         TEXT NOT NULL DEFAULT '{}',
    minimum          TEXT NOT NULL DEFAULT '{}',
    launch           TEXT NOT NULL DEFAULT '{}',
    image            TEXT NOT NULL DEFAULT '',
    command          TEXT NOT NULL DEFAULT '[]',
    default_path     TEXT NOT NULL DEFAULT '',
    unavailable      TEXT NOT NULL DEFAULT '',
    version          INTEGER NOT NULL DEFAULT 1,
    created_at       DATETIME NOT NULL,
    CONSTRAINT environments_name UNIQUE (name),
    CONSTRAINT environments_discovered UNIQUE (discovered_key)
);

CREATE TABLE providers (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('pending', 'online', 'draining', 'offline', 'lost', 'recalled')),
    seen_at    DATETIME NOT NULL,
    version    INTEGER NOT NULL DEFAULT 1,
    created_at DATETIME NOT NULL,
    CONSTRAINT providers_name UNIQUE (name)
);

CREATE TABLE devices (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    provider_id INTEGER NOT NULL REFERENCES providers (id),
    uuid        TEXT NOT NULL,
    number      INTEGER NOT NULL,
    minor       INTEGER NOT NULL,
    model       TEXT NOT NULL,
    memory_mib  INTEGER NOT NULL,
    architecture TEXT NOT NULL DEFAULT '',
    pci         TEXT NOT NULL DEFAULT '',
    driver      TEXT NOT NULL DEFAULT '',
    simulated   BOOLEAN NOT NULL DEFAULT FALSE,
    present     BOOLEAN NOT NULL DEFAULT TRUE,
    exclusive   BOOLEAN NOT NULL DEFAULT FALSE,
    mixed       BOOLEAN NOT NULL DEFAULT FALSE,
    version     INTEGER NOT NULL DEFAULT 1,
    created_at  DATETIME NOT NULL,
    CONSTRAINT devices_uuid UNIQUE (uuid)
);

CREATE TABLE workspaces (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id     INTEGER NOT NULL REFERENCES projects (id),
    member_id      INTEGER NOT NULL REFERENCES members (id),
    user_id        INTEGER NOT NULL REFERENCES users (id),
    environment_id INTEGER NOT NULL REFERENCES environments (id),
    name           TEXT NOT NULL,
    state          TEXT NOT NULL CHECK (state IN ('requested', 'queued', 'starting', 'running', 'stopping', 'stopped', 'failed')),
    gpus           INTEGER NOT NULL CHECK (gpus >= 0),
    cores          INTEGER NOT NULL CHECK (cores BETWEEN 0 AND 100),
    gpu_memory_mib INTEGER NOT NULL CHECK (gpu_memory_mib >= 0),
    gpu_model      TEXT NOT NULL DEFAULT '',
    cpu_milli      INTEGER NOT NULL CHECK (cpu_milli >= 0),
    memory_mib     INTEGER NOT NULL CHECK (memory_mib >= 0),
    storage_mib    INTEGER NOT NULL DEFAULT 0 CHECK (storage_mib >= 0),
    target         TEXT NOT NULL DEFAULT '[]',
    reason         TEXT NOT NULL DEFAULT '',
    log_tail       TEXT NOT NULL DEFAULT '',
    progress       INTEGER NOT NULL DEFAULT 0,
    generation     INTEGER NOT NULL DEFAULT 0,
    runtime_state  BLOB,
    endpoint       TEXT NOT NULL DEFAULT '{}',
    limits         TEXT NOT NULL DEFAULT '[]',
    secret         TEXT NOT NULL DEFAULT '',
    version        INTEGER NOT NULL DEFAULT 1,
    requested_at   DATETIME NOT NULL,
    started_at     DATETIME,
    ended_at       DATETIME,
    active_at      DATETIME
);
CREATE INDEX workspaces_project ON workspaces (project_id, state);
CREATE INDEX workspaces_user ON workspaces (user_id, state);
CREATE INDEX workspaces_state ON workspaces (state, id);
-- One member has one live workspace of a name in a project: a launch sent
-- twice is one launch.
CREATE UNIQUE INDEX workspaces_live_name ON workspaces (member_id, name) WHERE state NOT IN ('stopped', 'failed');

CREATE TABLE shares (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    device_id    INTEGER NOT NULL REFERENCES devices (id),
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
    project_id   INTEGER NOT NULL REFERENCES projects (id),
    user_id      INTEGER NOT NULL REFERENCES users (id),
    cores        INTEGER NOT NULL CHECK (cores BETWEEN 1 AND 100),
    memory_mib   INTEGER NOT NULL CHECK (memory_mib >= 0),
    enforcement  TEXT NOT NULL CHECK (enforcement IN ('exclusive', 'mig', 'mps', 'advisory')),
    from_at      DATETIME NOT NULL,
    until_at     DATETIME
);
CREATE INDEX shares_open ON shares (device_id) WHERE until_at IS NULL;
CREATE INDEX shares_workspace ON shares (workspace_id);
CREATE INDEX shares_device ON shares (device_id, from_at);

CREATE TABLE workspace_events (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    project_id   INTEGER NOT NULL REFERENCES projects (id),
    at           DATETIME NOT NULL,
    state        TEXT NOT NULL,
    message      TEXT NOT NULL
);
CREATE INDEX workspace_events_workspace ON workspace_events (workspace_id, id);

CREATE TABLE decisions (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    at           DATETIME NOT NULL,
    project_id   INTEGER NOT NULL REFERENCES projects (id),
    workspace_id INTEGER REFERENCES workspaces (id),
    user_id      INTEGER NOT NULL REFERENCES users (id),
    outcome      TEXT NOT NULL CHECK (outcome IN ('granted', 'partial', 'delayed', 'refused')),
    demand       TEXT NOT NULL,
    explanation  TEXT NOT NULL
);

CREATE TABLE one_time_tokens (
    hash         TEXT PRIMARY KEY,
    purpose      TEXT NOT NULL CHECK (purpose IN ('setup', 'open')),
    user_id      INTEGER REFERENCES users (id) ON DELETE CASCADE,
    workspace_id INTEGER REFERENCES workspaces (id) ON DELETE CASCADE,
    session      TEXT NOT NULL DEFAULT '',
    expires_at   DATETIME NOT NULL
);
CREATE INDEX one_time_tokens_expires_at ON one_time_tokens (expires_at);

CREATE TABLE visits (
    hash         TEXT PRIMARY KEY,
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_id      INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    epoch        INTEGER NOT NULL,
    session      TEXT NOT NULL,
    expires_at   DATETIME NOT NULL
);
CREATE INDEX visits_workspace ON visits (workspace_id);
CREATE INDEX visits_expires_at ON visits (expires_at);

CREATE TABLE audit_entries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         DATETIME NOT NULL,
    actor_id   INTEGER,
    actor      TEXT NOT NULL,
    action     TEXT NOT NULL,
    object     TEXT NOT NULL,
    object_id  INTEGER NOT NULL,
    project_id INTEGER,
    before     TEXT NOT NULL DEFAULT '',
    after      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX audit_entries_project ON audit_entries (project_id, id);

-- One row that every placement locks, so that two decisions never plan over
-- the same free cores.
CREATE TABLE pool_lock (id INTEGER PRIMARY KEY CHECK (id = 1), decisions INTEGER NOT NULL DEFAULT 0);
INSERT INTO pool_lock (id) VALUES (1);

-- +goose Down
DROP TABLE pool_lock;
DROP TABLE audit_entries;
DROP TABLE visits;
DROP TABLE one_time_tokens;
DROP TABLE decisions;
DROP TABLE workspace_events;
DROP TABLE shares;
DROP TABLE workspaces;
DROP TABLE devices;
DROP TABLE providers;
DROP TABLE environments;
DROP TABLE members;
DROP TABLE roles;
DROP TABLE projects;
DROP TABLE access_tokens;
DROP TABLE sessions;
DROP TABLE users;
