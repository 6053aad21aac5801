-- +goose Up
-- By which objectives the devices of a reservation were chosen.
ALTER TABLE reservations ADD COLUMN explanation TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE reservations DROP COLUMN explanation;
