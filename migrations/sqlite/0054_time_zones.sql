-- +goose Up
-- The time zone in which pages show times to a person; empty: that of the browser.
ALTER TABLE users ADD COLUMN time_zone TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE users DROP COLUMN time_zone;
