-- +goose Up
-- An epoch is the term of a leader.
ALTER TABLE users RENAME COLUMN session_epoch TO session_generation;
ALTER TABLE visits RENAME COLUMN epoch TO session_generation;

-- +goose Down
ALTER TABLE visits RENAME COLUMN session_generation TO epoch;
ALTER TABLE users RENAME COLUMN session_generation TO session_epoch;
