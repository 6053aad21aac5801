-- +goose Up
-- When the second factor of an account was enabled; NULL: it has none.
ALTER TABLE users ADD COLUMN second_factor_at TIMESTAMPTZ;
-- The authenticator apps of accounts, by their encrypted secrets. A new secret is one whose enrollment is not confirmed.
CREATE TABLE second_factors (
    user_id    BIGINT PRIMARY KEY REFERENCES users (id),
    secret     TEXT NOT NULL DEFAULT '',
    step       BIGINT NOT NULL DEFAULT 0,
    new_secret TEXT NOT NULL DEFAULT '',
    new_until  TIMESTAMPTZ
);
-- The recovery codes that have not been used, hashed.
CREATE TABLE recovery_codes (
    user_id BIGINT NOT NULL REFERENCES users (id),
    hash    TEXT NOT NULL,
    PRIMARY KEY (user_id, hash)
);
-- Who must have a second factor.
CREATE TABLE sign_in_policy (
    id            BIGINT PRIMARY KEY CHECK (id = 1),
    second_factor TEXT NOT NULL DEFAULT 'none' CHECK (second_factor IN ('none', 'administrators', 'everyone')),
    version       BIGINT NOT NULL DEFAULT 1
);
INSERT INTO sign_in_policy (id) VALUES (1);

-- +goose Down
DROP TABLE sign_in_policy;
DROP TABLE recovery_codes;
DROP TABLE second_factors;
ALTER TABLE users DROP COLUMN second_factor_at;
