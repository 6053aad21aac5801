-- +goose Up
-- Whether only shares and reservations of a provider's devices have changed, so that a server reads only
-- these again. Servers of an earlier version do not say so.
ALTER TABLE pool_changes ADD COLUMN shares_only BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE pool_changes DROP COLUMN shares_only;
