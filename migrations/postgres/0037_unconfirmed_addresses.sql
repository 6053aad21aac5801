-- +goose Up
-- Without a mail server, whoever invites gets the link: that the invited has the address
-- is then known to no one. Addresses of accounts that exist count as confirmed.
ALTER TABLE invitations ADD COLUMN link_shown BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE users ADD COLUMN email_unconfirmed BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE users DROP COLUMN email_unconfirmed;
ALTER TABLE invitations DROP COLUMN link_shown;
