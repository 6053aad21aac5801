-- +goose Up
-- What workspaces used in the last hour, from their notebook servers' reports.
CREATE TABLE workspace_telemetry (
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id),
    at           DATETIME NOT NULL,
    cpu_milli    INTEGER NOT NULL,
    memory_mib   INTEGER NOT NULL,
    gpu_percent  INTEGER,
    PRIMARY KEY (workspace_id, at)
);
CREATE INDEX workspace_telemetry_at ON workspace_telemetry (at);

-- +goose Down
DROP TABLE workspace_telemetry;
