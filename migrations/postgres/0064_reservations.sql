-- +goose Up
-- How long a run lasts at most, from its start, and by when its shares end if a reservation needs them.
ALTER TABLE holders ADD COLUMN time_limit_seconds BIGINT NOT NULL DEFAULT 0;
UPDATE holders SET time_limit_seconds = COALESCE((SELECT r.time_limit_seconds FROM runs r WHERE r.holder_id = holders.id), 0)
WHERE kind = 'run';
ALTER TABLE shares ADD COLUMN ends_by TIMESTAMPTZ;
-- The end of which the user of a reservation was told while it was in use.
ALTER TABLE reservations ADD COLUMN told_end TIMESTAMPTZ;
-- Shares in preemptible reservations have a price of their own, which is that of reserved ones until another is set.
ALTER TABLE gpu_prices DROP CONSTRAINT gpu_prices_billing_check;
ALTER TABLE gpu_prices ADD CONSTRAINT gpu_prices_billing_check CHECK (billing IN ('on_demand', 'reserved', 'preemptible'));
SELECT setval(pg_get_serial_sequence('gpu_prices', 'id'), (SELECT MAX(id) FROM gpu_prices));
INSERT INTO gpu_prices (model, billing, micros, currency, valid_from, created_at)
SELECT model, 'preemptible', micros, currency, valid_from, created_at FROM gpu_prices WHERE billing = 'reserved';

-- +goose Down
DELETE FROM gpu_prices WHERE billing = 'preemptible';
ALTER TABLE gpu_prices DROP CONSTRAINT gpu_prices_billing_check;
ALTER TABLE gpu_prices ADD CONSTRAINT gpu_prices_billing_check CHECK (billing IN ('on_demand', 'reserved'));
ALTER TABLE reservations DROP COLUMN told_end;
ALTER TABLE shares DROP COLUMN ends_by;
ALTER TABLE holders DROP COLUMN time_limit_seconds;
