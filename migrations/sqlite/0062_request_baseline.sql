-- +goose Up
-- The quota or limit when a request to change it was submitted, to tell what was raised since.
ALTER TABLE quota_requests ADD COLUMN baseline TEXT;

-- +goose Down
ALTER TABLE quota_requests DROP COLUMN baseline;
