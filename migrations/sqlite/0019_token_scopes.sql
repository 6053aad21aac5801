-- +goose Up
-- Tokens that exist keep all their permissions.
ALTER TABLE access_tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '["read","launch","project","admin"]';

-- A request with an Idempotency-Key that was carried out. The row is committed with
-- what the request made; the response is added when it is known.
CREATE TABLE idempotency_keys (
    user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    key        TEXT NOT NULL,
    request    TEXT NOT NULL, -- hash of method, path and body
    status     INTEGER NOT NULL DEFAULT 0, -- 0: without a response
    header     TEXT NOT NULL DEFAULT '{}',
    body       TEXT NOT NULL DEFAULT '',
    created_at DATETIME NOT NULL,
    PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);

-- +goose Down
DROP TABLE idempotency_keys;
ALTER TABLE access_tokens DROP COLUMN scopes;
