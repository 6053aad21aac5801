-- +goose Up
-- Since when what is unused of a reservation can be used, if that is later than its start: its machine or the portal was away.
ALTER TABLE reservations ADD COLUMN usable_at DATETIME;

-- +goose Down
ALTER TABLE reservations DROP COLUMN usable_at;
