-- +goose Up
-- Who has stopped the run: its user need not be told.
ALTER TABLE runs ADD COLUMN stopped_by INTEGER REFERENCES users (id);

-- +goose Down
ALTER TABLE runs DROP COLUMN stopped_by;
