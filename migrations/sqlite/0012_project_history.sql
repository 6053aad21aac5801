-- +goose Up
-- What a project's members were promised, and its quota, over time: each row
-- from from_at until until_at, the present one without an end. It is written
-- in the transaction that changes either, and begins with this migration.
CREATE TABLE project_history (
    id                       INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id               INTEGER NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    from_at                  DATETIME NOT NULL,
    until_at                 DATETIME,
    members                  INTEGER NOT NULL,
    promised_gpu_cores       INTEGER NOT NULL,
    promised_gpu_memory_mib  INTEGER NOT NULL,
    promised_cpu_milli       INTEGER NOT NULL,
    promised_memory_mib      INTEGER NOT NULL,
    promised_storage_mib     INTEGER NOT NULL,
    quota_gpu_cores          INTEGER NOT NULL,
    quota_gpu_memory_mib     INTEGER NOT NULL,
    quota_cpu_milli          INTEGER NOT NULL,
    quota_memory_mib         INTEGER NOT NULL,
    quota_storage_mib        INTEGER NOT NULL,
    CONSTRAINT project_history_from UNIQUE (project_id, from_at)
);
CREATE UNIQUE INDEX project_history_present ON project_history (project_id) WHERE until_at IS NULL;

INSERT INTO project_history (project_id, from_at, members,
    promised_gpu_cores, promised_gpu_memory_mib, promised_cpu_milli, promised_memory_mib, promised_storage_mib,
    quota_gpu_cores, quota_gpu_memory_mib, quota_cpu_milli, quota_memory_mib, quota_storage_mib)
SELECT projects.id, strftime('%Y-%m-%d %H:%M:%f+00:00', 'now'), COUNT(members.id),
    COALESCE(SUM(roles.peak_gpu_cores), 0),
    COALESCE(SUM(roles.peak_gpu_memory_mib), 0),
    COALESCE(SUM(roles.peak_cpu_milli), 0),
    COALESCE(SUM(roles.peak_memory_mib), 0),
    COALESCE(SUM(roles.peak_storage_mib), 0),
    projects.quota_gpu_cores, projects.quota_gpu_memory_mib, projects.quota_cpu_milli, projects.quota_memory_mib, projects.quota_storage_mib
FROM projects
LEFT JOIN members ON members.project_id = projects.id AND members.removed_at IS NULL
LEFT JOIN roles ON roles.id = members.role_id
GROUP BY projects.id;

-- +goose Down
DROP TABLE project_history;
