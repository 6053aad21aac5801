-- +goose Up
-- Who asks for quota, a role or a place in a project, and what was decided.
-- Asked and decided are the input of the kind, as JSON.
CREATE TABLE quota_requests (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    kind            TEXT NOT NULL CHECK (kind IN ('project', 'quota', 'role', 'peak', 'period', 'deadline', 'join')),
    project_id      INTEGER REFERENCES projects (id) ON DELETE CASCADE, -- of a new project once it is approved
    role_id         INTEGER REFERENCES roles (id) ON DELETE SET NULL,
    member_id       INTEGER REFERENCES members (id) ON DELETE SET NULL,
    requester_id    INTEGER NOT NULL REFERENCES users (id),
    asked           TEXT NOT NULL,
    reason          TEXT NOT NULL,
    state           TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'approved', 'adjusted', 'refused', 'withdrawn')),
    decided         TEXT,
    decider_id      INTEGER REFERENCES users (id),
    decision_reason TEXT NOT NULL DEFAULT '',
    version         INTEGER NOT NULL DEFAULT 1,
    created_at      DATETIME NOT NULL,
    decided_at      DATETIME,
    CONSTRAINT quota_requests_decided CHECK ((state = 'pending') = (decided_at IS NULL))
);
CREATE INDEX quota_requests_requester ON quota_requests (requester_id, id);
CREATE INDEX quota_requests_project ON quota_requests (project_id, id);
CREATE INDEX quota_requests_pending ON quota_requests (id) WHERE state = 'pending';
CREATE INDEX quota_requests_role ON quota_requests (role_id);
CREATE INDEX quota_requests_member ON quota_requests (member_id);

-- How much of each resource may be promised, in percent of what there is. Of
-- what nothing measures, an administrator states how much there is; 0: unknown.
CREATE TABLE overcommit (
    id                   INTEGER PRIMARY KEY CHECK (id = 1),
    ratio_gpu_cores      INTEGER NOT NULL DEFAULT 100 CHECK (ratio_gpu_cores > 0),
    ratio_gpu_memory_mib INTEGER NOT NULL DEFAULT 100 CHECK (ratio_gpu_memory_mib > 0),
    ratio_cpu_milli      INTEGER NOT NULL DEFAULT 100 CHECK (ratio_cpu_milli > 0),
    ratio_memory_mib     INTEGER NOT NULL DEFAULT 100 CHECK (ratio_memory_mib > 0),
    ratio_storage_mib    INTEGER NOT NULL DEFAULT 100 CHECK (ratio_storage_mib > 0),
    stated_cpu_milli     INTEGER NOT NULL DEFAULT 0 CHECK (stated_cpu_milli >= 0),
    stated_memory_mib    INTEGER NOT NULL DEFAULT 0 CHECK (stated_memory_mib >= 0),
    stated_storage_mib   INTEGER NOT NULL DEFAULT 0 CHECK (stated_storage_mib >= 0),
    version              INTEGER NOT NULL DEFAULT 1
);
INSERT INTO overcommit (id) VALUES (1);

-- A project's managers may let people ask to join it by its name.
ALTER TABLE projects ADD COLUMN ask_to_join BOOLEAN NOT NULL DEFAULT FALSE;

-- What a project used lately, without reading all that there ever was.
CREATE INDEX shares_project ON shares (project_id, until_at);
CREATE INDEX workspaces_project_ended ON workspaces (project_id, ended_at);

-- +goose Down
DROP INDEX workspaces_project_ended;
DROP INDEX shares_project;
ALTER TABLE projects DROP COLUMN ask_to_join;
DROP TABLE overcommit;
DROP TABLE quota_requests;
