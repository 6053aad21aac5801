-- +goose Up
-- The open shares of a device and of a holder. SQLite has no statistics: it took the index of
-- until_at for them, that is all open shares of the pool.
DROP INDEX shares_until;
CREATE INDEX shares_until ON shares (until_at, device_id);
DROP INDEX shares_holder;
CREATE INDEX shares_holder ON shares (holder_id, until_at);

-- +goose Down
DROP INDEX shares_holder;
CREATE INDEX shares_holder ON shares (holder_id);
DROP INDEX shares_until;
CREATE INDEX shares_until ON shares (until_at);
