-- +goose Up
-- What workspaces used in the last hour, from their notebook servers' reports.
CREATE TABLE workspace_telemetry (
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    at           TIMESTAMPTZ NOT NULL,
    cpu_milli    BIGINT NOT NULL,
    memory_mib   BIGINT NOT NULL,
    gpu_percent  BIGINT,
    PRIMARY KEY (workspace_id, at)
);
CREATE INDEX workspace_telemetry_at ON workspace_telemetry (at);

-- +goose Down
DROP TABLE workspace_telemetry;
