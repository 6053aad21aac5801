-- +goose Up
-- Prices of GPU core hours, of a device model and a billing model, from an instant on until
-- the next of the same; rows are never changed. Micros are millionths of the currency.
CREATE TABLE gpu_prices (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    model      TEXT NOT NULL,
    billing    TEXT NOT NULL CHECK (billing IN ('on_demand', 'reserved')),
    micros     INTEGER NOT NULL CHECK (micros >= 0),
    currency   TEXT NOT NULL,
    valid_from DATETIME NOT NULL,
    created_at DATETIME NOT NULL,
    UNIQUE (model, billing, valid_from)
);
-- The shares of all projects in a span of time.
CREATE INDEX shares_until ON shares (until_at);

-- +goose Down
DROP INDEX shares_until;
DROP TABLE gpu_prices;
