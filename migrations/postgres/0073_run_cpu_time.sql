-- +goose Up
-- The CPU time that the processes of a run that has ended have used, in milliseconds.
ALTER TABLE runs ADD COLUMN cpu_time_ms BIGINT;

-- +goose Down
ALTER TABLE runs DROP COLUMN cpu_time_ms;
