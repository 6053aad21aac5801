-- +goose Up
-- A page of a project's members, in their order.
CREATE INDEX members_project ON members (project_id, id);
-- What is promised of the pool, read without the projects themselves.
CREATE INDEX projects_quota ON projects (ends_at, quota_gpu_cores, quota_gpu_memory_mib, quota_cpu_milli, quota_memory_mib, quota_storage_mib);
-- The console's list of projects, by name and by quota.
CREATE INDEX projects_by_name ON projects (LOWER(name), id);
CREATE INDEX projects_by_quota ON projects (quota_gpu_cores, id);
-- What is held now, however much has ended.
CREATE INDEX workspaces_holding ON workspaces (project_id) WHERE state IN ('starting', 'running', 'stopping');

-- +goose Down
DROP INDEX workspaces_holding;
DROP INDEX projects_by_quota;
DROP INDEX projects_by_name;
DROP INDEX projects_quota;
DROP INDEX members_project;
