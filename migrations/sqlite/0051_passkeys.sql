-- +goose Up
-- The passkeys of accounts: WebAuthn credentials, by their public keys. A passkey accepts only ceremonies that began after
-- the one in which it was last accepted.
CREATE TABLE passkeys (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id         INTEGER NOT NULL REFERENCES users (id),
    name            TEXT NOT NULL,
    credential_id   BLOB NOT NULL UNIQUE,
    user_handle     BLOB NOT NULL,
    public_key      BLOB NOT NULL,
    sign_count      INTEGER NOT NULL DEFAULT 0,
    backup_eligible BOOLEAN NOT NULL DEFAULT FALSE,
    transports      TEXT NOT NULL DEFAULT '[]',
    ceremony_at     DATETIME NOT NULL,
    last_used_at    DATETIME,
    created_at      DATETIME NOT NULL
);
CREATE INDEX passkeys_user ON passkeys (user_id);

-- +goose Down
DROP TABLE passkeys;
