-- +goose Up
-- The user of a reservation was told that it has begun and cannot be used, and not yet that it can.
ALTER TABLE reservations ADD COLUMN told_unusable BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE reservations DROP COLUMN told_unusable;
