-- +goose Up
-- How many kernels of a workspace ran and computed, which a person is told before it is stopped.
ALTER TABLE workspace_telemetry ADD COLUMN kernels INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workspace_telemetry ADD COLUMN busy_kernels INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE workspace_telemetry DROP COLUMN busy_kernels;
ALTER TABLE workspace_telemetry DROP COLUMN kernels;
