-- +goose Up
-- How long a run lasts at most, from its start, and by when its shares end if a reservation needs them.
ALTER TABLE holders ADD COLUMN time_limit_seconds INTEGER NOT NULL DEFAULT 0;
UPDATE holders SET time_limit_seconds = COALESCE((SELECT r.time_limit_seconds FROM runs r WHERE r.holder_id = holders.id), 0)
WHERE kind = 'run';
ALTER TABLE shares ADD COLUMN ends_by DATETIME;
-- The end of which the user of a reservation was told while it was in use.
ALTER TABLE reservations ADD COLUMN told_end DATETIME;
-- Shares in preemptible reservations have a price of their own, which is that of reserved ones until another is set.
CREATE TABLE new_gpu_prices (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    model      TEXT NOT NULL,
    billing    TEXT NOT NULL CHECK (billing IN ('on_demand', 'reserved', 'preemptible')),
    micros     INTEGER NOT NULL CHECK (micros >= 0),
    currency   TEXT NOT NULL,
    valid_from DATETIME NOT NULL,
    created_at DATETIME NOT NULL,
    UNIQUE (model, billing, valid_from)
);
INSERT INTO new_gpu_prices SELECT * FROM gpu_prices;
DROP TABLE gpu_prices;
ALTER TABLE new_gpu_prices RENAME TO gpu_prices;
INSERT INTO gpu_prices (model, billing, micros, currency, valid_from, created_at)
SELECT model, 'preemptible', micros, currency, valid_from, created_at FROM gpu_prices WHERE billing = 'reserved';

-- +goose Down
DELETE FROM gpu_prices WHERE billing = 'preemptible';
CREATE TABLE former_gpu_prices (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    model      TEXT NOT NULL,
    billing    TEXT NOT NULL CHECK (billing IN ('on_demand', 'reserved')),
    micros     INTEGER NOT NULL CHECK (micros >= 0),
    currency   TEXT NOT NULL,
    valid_from DATETIME NOT NULL,
    created_at DATETIME NOT NULL,
    UNIQUE (model, billing, valid_from)
);
INSERT INTO former_gpu_prices SELECT * FROM gpu_prices;
DROP TABLE gpu_prices;
ALTER TABLE former_gpu_prices RENAME TO gpu_prices;
ALTER TABLE reservations DROP COLUMN told_end;
ALTER TABLE shares DROP COLUMN ends_by;
ALTER TABLE holders DROP COLUMN time_limit_seconds;
