-- +goose Up
-- One word for one thing, the same in the database as on the pages.
ALTER TABLE roles RENAME COLUMN peak_gpu_cores TO limit_gpu_cores;
ALTER TABLE roles RENAME COLUMN peak_gpu_memory_mib TO limit_gpu_memory_mib;
ALTER TABLE roles RENAME COLUMN peak_cpu_milli TO limit_cpu_milli;
ALTER TABLE roles RENAME COLUMN peak_memory_mib TO limit_memory_mib;
ALTER TABLE roles RENAME COLUMN peak_storage_mib TO limit_storage_mib;

ALTER TABLE project_history RENAME COLUMN promised_gpu_cores TO allocated_gpu_cores;
ALTER TABLE project_history RENAME COLUMN promised_gpu_memory_mib TO allocated_gpu_memory_mib;
ALTER TABLE project_history RENAME COLUMN promised_cpu_milli TO allocated_cpu_milli;
ALTER TABLE project_history RENAME COLUMN promised_memory_mib TO allocated_memory_mib;
ALTER TABLE project_history RENAME COLUMN promised_storage_mib TO allocated_storage_mib;

ALTER TABLE projects RENAME COLUMN ask_to_join TO join_requests;
ALTER TABLE quota_requests RENAME COLUMN asked TO requested;
UPDATE quota_requests SET requested = REPLACE(requested, '"peak":', '"limit":'), decided = REPLACE(decided, '"peak":', '"limit":');
ALTER TABLE quota_requests ADD COLUMN new_kind TEXT NOT NULL DEFAULT 'project'
    CHECK (new_kind IN ('project', 'quota', 'role', 'limit', 'period', 'deadline', 'join'));
UPDATE quota_requests SET new_kind = CASE kind WHEN 'peak' THEN 'limit' ELSE kind END;
ALTER TABLE quota_requests DROP COLUMN kind;
ALTER TABLE quota_requests RENAME COLUMN new_kind TO kind;
UPDATE providers SET terms = REPLACE(terms, '"notice_minutes":', '"grace_minutes":');

DROP INDEX notices_user;
DROP INDEX notices_unread;
DROP INDEX notices_created_at;
DROP INDEX deliveries_notice;
DROP INDEX deliveries_line;
ALTER TABLE notices RENAME TO notifications;
ALTER TABLE notice_preferences RENAME TO notification_preferences;
ALTER TABLE deliveries RENAME COLUMN notice_id TO notification_id;
ALTER TABLE deliveries RENAME COLUMN answer TO response;
ALTER TABLE period_notices RENAME TO period_notifications;
ALTER TABLE period_notifications RENAME COLUMN told_at TO notified_at;
CREATE INDEX notifications_user ON notifications (user_id, id);
CREATE INDEX notifications_unread ON notifications (user_id) WHERE read_at IS NULL;
CREATE INDEX notifications_created_at ON notifications (created_at);
CREATE INDEX deliveries_notification ON deliveries (notification_id);
CREATE INDEX deliveries_queue ON deliveries (receiver, id) WHERE finished_at IS NULL;

DROP INDEX workspaces_holding;
CREATE INDEX workspaces_in_use ON workspaces (project_id) WHERE state IN ('starting', 'running', 'stopping');

ALTER TABLE revocations RENAME COLUMN ties TO keys;
ALTER TABLE servers RENAME COLUMN beat TO heartbeat;
ALTER TABLE servers RENAME COLUMN done TO applied;

-- What the program decides by is a column, not the wording of a text.
ALTER TABLE agents ADD COLUMN revoked_by_admin BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE agents SET revoked_by_admin = TRUE WHERE revoked_why LIKE '%"f":"an administrator has revoked it"%';

-- +goose Down
ALTER TABLE agents DROP COLUMN revoked_by_admin;

ALTER TABLE servers RENAME COLUMN applied TO done;
ALTER TABLE servers RENAME COLUMN heartbeat TO beat;
ALTER TABLE revocations RENAME COLUMN keys TO ties;

DROP INDEX workspaces_in_use;
CREATE INDEX workspaces_holding ON workspaces (project_id) WHERE state IN ('starting', 'running', 'stopping');

DROP INDEX deliveries_queue;
DROP INDEX deliveries_notification;
DROP INDEX notifications_created_at;
DROP INDEX notifications_unread;
DROP INDEX notifications_user;
ALTER TABLE period_notifications RENAME COLUMN notified_at TO told_at;
ALTER TABLE period_notifications RENAME TO period_notices;
ALTER TABLE deliveries RENAME COLUMN response TO answer;
ALTER TABLE deliveries RENAME COLUMN notification_id TO notice_id;
ALTER TABLE notification_preferences RENAME TO notice_preferences;
ALTER TABLE notifications RENAME TO notices;
CREATE INDEX deliveries_line ON deliveries (receiver, id) WHERE finished_at IS NULL;
CREATE INDEX deliveries_notice ON deliveries (notice_id);
CREATE INDEX notices_created_at ON notices (created_at);
CREATE INDEX notices_unread ON notices (user_id) WHERE read_at IS NULL;
CREATE INDEX notices_user ON notices (user_id, id);

UPDATE providers SET terms = REPLACE(terms, '"grace_minutes":', '"notice_minutes":');
ALTER TABLE quota_requests ADD COLUMN new_kind TEXT NOT NULL DEFAULT 'project'
    CHECK (new_kind IN ('project', 'quota', 'role', 'peak', 'period', 'deadline', 'join'));
UPDATE quota_requests SET new_kind = CASE kind WHEN 'limit' THEN 'peak' ELSE kind END;
ALTER TABLE quota_requests DROP COLUMN kind;
ALTER TABLE quota_requests RENAME COLUMN new_kind TO kind;
UPDATE quota_requests SET requested = REPLACE(requested, '"limit":', '"peak":'), decided = REPLACE(decided, '"limit":', '"peak":');
ALTER TABLE quota_requests RENAME COLUMN requested TO asked;
ALTER TABLE projects RENAME COLUMN join_requests TO ask_to_join;

ALTER TABLE project_history RENAME COLUMN allocated_storage_mib TO promised_storage_mib;
ALTER TABLE project_history RENAME COLUMN allocated_memory_mib TO promised_memory_mib;
ALTER TABLE project_history RENAME COLUMN allocated_cpu_milli TO promised_cpu_milli;
ALTER TABLE project_history RENAME COLUMN allocated_gpu_memory_mib TO promised_gpu_memory_mib;
ALTER TABLE project_history RENAME COLUMN allocated_gpu_cores TO promised_gpu_cores;

ALTER TABLE roles RENAME COLUMN limit_storage_mib TO peak_storage_mib;
ALTER TABLE roles RENAME COLUMN limit_memory_mib TO peak_memory_mib;
ALTER TABLE roles RENAME COLUMN limit_cpu_milli TO peak_cpu_milli;
ALTER TABLE roles RENAME COLUMN limit_gpu_memory_mib TO peak_gpu_memory_mib;
ALTER TABLE roles RENAME COLUMN limit_gpu_cores TO peak_gpu_cores;
