-- +goose Up
-- What has shares of the pool, waits for them, or was decided on. Its kind says in which
-- table the rest of it is, with its holder_id.
CREATE TABLE holders (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT NOT NULL,
    project_id INTEGER NOT NULL REFERENCES projects (id),
    member_id  INTEGER NOT NULL REFERENCES members (id),
    user_id    INTEGER NOT NULL REFERENCES users (id)
);
ALTER TABLE workspaces ADD COLUMN holder_id INTEGER REFERENCES holders (id);
INSERT INTO holders (id, kind, project_id, member_id, user_id) SELECT id, 'workspace', project_id, member_id, user_id FROM workspaces;
UPDATE workspaces SET holder_id = id;
CREATE UNIQUE INDEX workspaces_holder ON workspaces (holder_id);

CREATE TABLE new_shares (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    device_id    INTEGER NOT NULL REFERENCES devices (id),
    project_id   INTEGER NOT NULL REFERENCES projects (id),
    user_id      INTEGER NOT NULL REFERENCES users (id),
    cores        INTEGER NOT NULL CHECK (cores BETWEEN 1 AND 100),
    memory_mib   INTEGER NOT NULL CHECK (memory_mib >= 0),
    enforcement  TEXT NOT NULL CHECK (enforcement IN ('exclusive', 'mig', 'mps', 'advisory')),
    from_at      DATETIME NOT NULL,
    until_at     DATETIME,
    ends_at      DATETIME,
    end_reason   TEXT NOT NULL DEFAULT '',
    grant_id     INTEGER,
    holder_id    INTEGER NOT NULL REFERENCES holders (id)
);
INSERT INTO new_shares (id, device_id, project_id, user_id, cores, memory_mib, enforcement, from_at, until_at, ends_at, end_reason, grant_id, holder_id)
    SELECT id, device_id, project_id, user_id, cores, memory_mib, enforcement, from_at, until_at, ends_at, end_reason, grant_id, workspace_id FROM shares;
DROP TABLE shares;
ALTER TABLE new_shares RENAME TO shares;
CREATE INDEX shares_open ON shares (device_id) WHERE until_at IS NULL;
CREATE INDEX shares_holder ON shares (holder_id);
CREATE INDEX shares_device ON shares (device_id, from_at);
CREATE INDEX shares_project ON shares (project_id, until_at);
CREATE INDEX shares_ends_at ON shares (ends_at) WHERE until_at IS NULL AND ends_at IS NOT NULL;

ALTER TABLE decisions ADD COLUMN holder_id INTEGER REFERENCES holders (id); -- NULL: the launch was refused
UPDATE decisions SET holder_id = workspace_id;
ALTER TABLE decisions DROP COLUMN workspace_id;

-- +goose Down
ALTER TABLE decisions ADD COLUMN workspace_id INTEGER REFERENCES workspaces (id);
UPDATE decisions SET workspace_id = (SELECT id FROM workspaces WHERE workspaces.holder_id = decisions.holder_id);
ALTER TABLE decisions DROP COLUMN holder_id;

CREATE TABLE new_shares (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    device_id    INTEGER NOT NULL REFERENCES devices (id),
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
    project_id   INTEGER NOT NULL REFERENCES projects (id),
    user_id      INTEGER NOT NULL REFERENCES users (id),
    cores        INTEGER NOT NULL CHECK (cores BETWEEN 1 AND 100),
    memory_mib   INTEGER NOT NULL CHECK (memory_mib >= 0),
    enforcement  TEXT NOT NULL CHECK (enforcement IN ('exclusive', 'mig', 'mps', 'advisory')),
    from_at      DATETIME NOT NULL,
    until_at     DATETIME,
    ends_at      DATETIME,
    end_reason   TEXT NOT NULL DEFAULT '',
    grant_id     INTEGER
);
INSERT INTO new_shares (id, device_id, project_id, user_id, cores, memory_mib, enforcement, from_at, until_at, ends_at, end_reason, grant_id, workspace_id)
    SELECT s.id, s.device_id, s.project_id, s.user_id, s.cores, s.memory_mib, s.enforcement, s.from_at, s.until_at, s.ends_at, s.end_reason, s.grant_id, w.id
    FROM shares s JOIN workspaces w ON w.holder_id = s.holder_id;
DROP TABLE shares;
ALTER TABLE new_shares RENAME TO shares;
CREATE INDEX shares_open ON shares (device_id) WHERE until_at IS NULL;
CREATE INDEX shares_workspace ON shares (workspace_id);
CREATE INDEX shares_device ON shares (device_id, from_at);
CREATE INDEX shares_project ON shares (project_id, until_at);
CREATE INDEX shares_ends_at ON shares (ends_at) WHERE until_at IS NULL AND ends_at IS NOT NULL;

DROP INDEX workspaces_holder;
ALTER TABLE workspaces DROP COLUMN holder_id;
DROP TABLE holders;
