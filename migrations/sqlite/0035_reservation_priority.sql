-- +goose Up
-- The priority of reservations. Those that exist were promised not to be changed.
ALTER TABLE reservations ADD COLUMN class TEXT NOT NULL DEFAULT 'normal';
ALTER TABLE reservations ADD COLUMN qos TEXT NOT NULL DEFAULT 'guaranteed';
ALTER TABLE reservations ADD COLUMN task_type TEXT NOT NULL DEFAULT 'interactive';
ALTER TABLE reservations ADD COLUMN score REAL NOT NULL DEFAULT 0;
ALTER TABLE reservations ADD COLUMN score_parts TEXT NOT NULL DEFAULT '[]';
ALTER TABLE reservations ADD COLUMN least_cores INTEGER NOT NULL DEFAULT 0;
ALTER TABLE reservations ADD COLUMN moved_at DATETIME;
-- The reservations that were not used, by who had them.
CREATE INDEX reservations_expired ON reservations (user_id, ended_at) WHERE state = 'expired';

-- +goose Down
DROP INDEX reservations_expired;
ALTER TABLE reservations DROP COLUMN moved_at;
ALTER TABLE reservations DROP COLUMN least_cores;
ALTER TABLE reservations DROP COLUMN score_parts;
ALTER TABLE reservations DROP COLUMN score;
ALTER TABLE reservations DROP COLUMN task_type;
ALTER TABLE reservations DROP COLUMN qos;
ALTER TABLE reservations DROP COLUMN class;
