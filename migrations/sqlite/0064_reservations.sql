-- +goose Up
-- How long a run lasts at most, from its start, and by when its shares end if a reservation needs them.
ALTER TABLE holders ADD COLUMN time_limit_seconds INTEGER NOT NULL DEFAULT 0;
UPDATE holders SET time_limit_seconds = COALESCE((SELECT r.time_limit_seconds FROM runs r WHERE r.holder_id = holders.id), 0)
WHERE kind = 'run';
ALTER TABLE shares ADD COLUMN ends_by DATETIME;
-- The end of which the user of a reservation was told while it was in use.
ALTER TABLE reservations ADD COLUMN told_end DATETIME;

-- +goose Down
ALTER TABLE reservations DROP COLUMN told_end;
ALTER TABLE shares DROP COLUMN ends_by;
ALTER TABLE holders DROP COLUMN time_limit_seconds;
