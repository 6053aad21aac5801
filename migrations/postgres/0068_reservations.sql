-- +goose Up
-- The user of a reservation was told that it has begun and cannot be used, and not yet that it can.
ALTER TABLE reservations ADD COLUMN told_unusable BOOLEAN NOT NULL DEFAULT FALSE;
-- For the report of what was reserved in a span and not used.
CREATE INDEX reservation_grants_ends_at ON reservation_grants (ends_at);

-- +goose Down
DROP INDEX reservation_grants_ends_at;
ALTER TABLE reservations DROP COLUMN told_unusable;
