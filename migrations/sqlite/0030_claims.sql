-- +goose Up
-- A holder has its claim: what it demands of the pool and of its project, for how long, and
-- its phase, which quotas, limits and the queue count. The state of its kind says more.
ALTER TABLE holders ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE holders ADD COLUMN phase TEXT NOT NULL DEFAULT 'ended' CHECK (phase IN ('queued', 'in_use', 'ending', 'ended'));
ALTER TABLE holders ADD COLUMN gpus INTEGER NOT NULL DEFAULT 0 CHECK (gpus >= 0);
ALTER TABLE holders ADD COLUMN cores INTEGER NOT NULL DEFAULT 0 CHECK (cores BETWEEN 0 AND 100);
ALTER TABLE holders ADD COLUMN gpu_memory_mib INTEGER NOT NULL DEFAULT 0 CHECK (gpu_memory_mib >= 0);
ALTER TABLE holders ADD COLUMN gpu_model TEXT NOT NULL DEFAULT '';
ALTER TABLE holders ADD COLUMN cpu_milli INTEGER NOT NULL DEFAULT 0 CHECK (cpu_milli >= 0);
ALTER TABLE holders ADD COLUMN memory_mib INTEGER NOT NULL DEFAULT 0 CHECK (memory_mib >= 0);
ALTER TABLE holders ADD COLUMN storage_mib INTEGER NOT NULL DEFAULT 0 CHECK (storage_mib >= 0);
ALTER TABLE holders ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE holders ADD COLUMN requested_at DATETIME NOT NULL DEFAULT '1970-01-01 00:00:00+00:00';
ALTER TABLE holders ADD COLUMN started_at DATETIME;
ALTER TABLE holders ADD COLUMN ended_at DATETIME;
UPDATE holders SET name = w.name, gpus = w.gpus, cores = w.cores, gpu_memory_mib = w.gpu_memory_mib, gpu_model = w.gpu_model, cpu_milli = w.cpu_milli,
    memory_mib = w.memory_mib, storage_mib = w.storage_mib, reason = w.reason, requested_at = w.requested_at, started_at = w.started_at, ended_at = w.ended_at,
    phase = CASE w.state WHEN 'starting' THEN 'in_use' WHEN 'running' THEN 'in_use' WHEN 'stopping' THEN 'ending'
        WHEN 'stopped' THEN 'ended' WHEN 'failed' THEN 'ended' ELSE 'queued' END
    FROM workspaces w WHERE w.holder_id = holders.id;
CREATE INDEX holders_phase ON holders (phase, id);
-- One member has one live workspace of a name in a project: a launch sent twice is one launch.
CREATE UNIQUE INDEX holders_live_name ON holders (member_id, name) WHERE kind = 'workspace' AND phase <> 'ended';
CREATE INDEX holders_in_use ON holders (project_id) WHERE phase IN ('in_use', 'ending');
CREATE INDEX holders_project_ended ON holders (project_id, ended_at);
CREATE INDEX holders_user_phase ON holders (user_id, phase);

DROP INDEX workspaces_live_name;
DROP INDEX workspaces_in_use;
DROP INDEX workspaces_project_ended;
ALTER TABLE workspaces DROP COLUMN name;
ALTER TABLE workspaces DROP COLUMN gpus;
ALTER TABLE workspaces DROP COLUMN cores;
ALTER TABLE workspaces DROP COLUMN gpu_memory_mib;
ALTER TABLE workspaces DROP COLUMN gpu_model;
ALTER TABLE workspaces DROP COLUMN cpu_milli;
ALTER TABLE workspaces DROP COLUMN memory_mib;
ALTER TABLE workspaces DROP COLUMN storage_mib;
ALTER TABLE workspaces DROP COLUMN reason;
ALTER TABLE workspaces DROP COLUMN requested_at;
ALTER TABLE workspaces DROP COLUMN started_at;
ALTER TABLE workspaces DROP COLUMN ended_at;

-- +goose Down
ALTER TABLE workspaces ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE workspaces ADD COLUMN gpus INTEGER NOT NULL DEFAULT 0 CHECK (gpus >= 0);
ALTER TABLE workspaces ADD COLUMN cores INTEGER NOT NULL DEFAULT 0 CHECK (cores BETWEEN 0 AND 100);
ALTER TABLE workspaces ADD COLUMN gpu_memory_mib INTEGER NOT NULL DEFAULT 0 CHECK (gpu_memory_mib >= 0);
ALTER TABLE workspaces ADD COLUMN gpu_model TEXT NOT NULL DEFAULT '';
ALTER TABLE workspaces ADD COLUMN cpu_milli INTEGER NOT NULL DEFAULT 0 CHECK (cpu_milli >= 0);
ALTER TABLE workspaces ADD COLUMN memory_mib INTEGER NOT NULL DEFAULT 0 CHECK (memory_mib >= 0);
ALTER TABLE workspaces ADD COLUMN storage_mib INTEGER NOT NULL DEFAULT 0 CHECK (storage_mib >= 0);
ALTER TABLE workspaces ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE workspaces ADD COLUMN requested_at DATETIME NOT NULL DEFAULT '1970-01-01 00:00:00+00:00';
ALTER TABLE workspaces ADD COLUMN started_at DATETIME;
ALTER TABLE workspaces ADD COLUMN ended_at DATETIME;
UPDATE workspaces SET name = h.name, gpus = h.gpus, cores = h.cores, gpu_memory_mib = h.gpu_memory_mib, gpu_model = h.gpu_model, cpu_milli = h.cpu_milli,
    memory_mib = h.memory_mib, storage_mib = h.storage_mib, reason = h.reason, requested_at = h.requested_at, started_at = h.started_at, ended_at = h.ended_at
    FROM holders h WHERE h.id = workspaces.holder_id;
CREATE UNIQUE INDEX workspaces_live_name ON workspaces (member_id, name) WHERE state NOT IN ('stopped', 'failed');
CREATE INDEX workspaces_in_use ON workspaces (project_id) WHERE state IN ('starting', 'running', 'stopping');
CREATE INDEX workspaces_project_ended ON workspaces (project_id, ended_at);

DROP INDEX holders_phase;
DROP INDEX holders_live_name;
DROP INDEX holders_in_use;
DROP INDEX holders_project_ended;
DROP INDEX holders_user_phase;
ALTER TABLE holders DROP COLUMN name;
ALTER TABLE holders DROP COLUMN phase;
ALTER TABLE holders DROP COLUMN gpus;
ALTER TABLE holders DROP COLUMN cores;
ALTER TABLE holders DROP COLUMN gpu_memory_mib;
ALTER TABLE holders DROP COLUMN gpu_model;
ALTER TABLE holders DROP COLUMN cpu_milli;
ALTER TABLE holders DROP COLUMN memory_mib;
ALTER TABLE holders DROP COLUMN storage_mib;
ALTER TABLE holders DROP COLUMN reason;
ALTER TABLE holders DROP COLUMN requested_at;
ALTER TABLE holders DROP COLUMN started_at;
ALTER TABLE holders DROP COLUMN ended_at;
