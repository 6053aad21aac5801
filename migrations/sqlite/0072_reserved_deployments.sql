-- +goose Up
-- In which reservation the model is deployed, also while it is idle and has no share.
ALTER TABLE deployments ADD COLUMN reservation_id INTEGER REFERENCES reservations (id);

-- +goose Down
ALTER TABLE deployments DROP COLUMN reservation_id;
