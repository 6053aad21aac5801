-- +goose Up
-- What people are told; read_at is empty until they have seen it.
CREATE TABLE notices (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    kind       TEXT NOT NULL,
    text       TEXT NOT NULL,
    link       TEXT NOT NULL DEFAULT '',
    created_at DATETIME NOT NULL,
    read_at    DATETIME
);
CREATE INDEX notices_user ON notices (user_id, id);
CREATE INDEX notices_unread ON notices (user_id) WHERE read_at IS NULL;
CREATE INDEX notices_created_at ON notices (created_at);

-- How somebody wants to be told. Without a row: by e-mail too, in English.
CREATE TABLE notice_preferences (
    user_id     INTEGER PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    portal_only BOOLEAN NOT NULL DEFAULT FALSE,
    language    TEXT NOT NULL DEFAULT ''
);

-- Addresses that are told of events. The secrets are sealed by a key that is
-- not in this database.
CREATE TABLE webhooks (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL,
    url        TEXT NOT NULL,
    events     TEXT NOT NULL DEFAULT '[]',
    enabled    BOOLEAN NOT NULL DEFAULT TRUE,
    secret     TEXT NOT NULL,
    old_secret TEXT NOT NULL DEFAULT '',
    old_until  DATETIME,
    version    INTEGER NOT NULL DEFAULT 1,
    created_at DATETIME NOT NULL
);

-- What has to be sent, or was: to a webhook, or as the e-mail of a notice.
-- A row is open until finished_at; whoever sends it holds it until lease_until.
CREATE TABLE deliveries (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT NOT NULL UNIQUE,
    webhook_id  INTEGER REFERENCES webhooks (id) ON DELETE CASCADE,
    notice_id   INTEGER REFERENCES notices (id) ON DELETE CASCADE,
    receiver    TEXT NOT NULL,
    kind        TEXT NOT NULL,
    body        TEXT NOT NULL DEFAULT '',
    state       TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed', 'given_up')),
    attempts    INTEGER NOT NULL DEFAULT 0,
    refused     BOOLEAN NOT NULL DEFAULT FALSE,
    status      INTEGER NOT NULL DEFAULT 0,
    answer      TEXT NOT NULL DEFAULT '',
    problem     TEXT NOT NULL DEFAULT '',
    queued_at   DATETIME NOT NULL,
    next_at     DATETIME NOT NULL,
    lease_until DATETIME,
    created_at  DATETIME NOT NULL,
    finished_at DATETIME,
    CHECK ((webhook_id IS NULL) <> (notice_id IS NULL))
);
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE finished_at IS NULL;
CREATE INDEX deliveries_line ON deliveries (receiver, id) WHERE finished_at IS NULL;
CREATE INDEX deliveries_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_notice ON deliveries (notice_id);
CREATE INDEX deliveries_finished_at ON deliveries (finished_at) WHERE finished_at IS NOT NULL;

-- +goose Down
DROP TABLE deliveries;
DROP TABLE webhooks;
DROP TABLE notice_preferences;
DROP TABLE notices;
