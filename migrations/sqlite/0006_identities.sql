-- +goose Up
-- People whom a provider of sign-in knows; issuer and subject name them.
CREATE TABLE identities (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    issuer     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    email      TEXT NOT NULL,
    admin      BOOLEAN NOT NULL DEFAULT FALSE,
    created_at DATETIME NOT NULL,
    seen_at    DATETIME NOT NULL,
    CONSTRAINT identities_subject UNIQUE (issuer, subject),
    CONSTRAINT identities_user UNIQUE (user_id, issuer)
);

-- Places in projects that came by a group, and go with it.
CREATE TABLE identity_members (
    identity_id INTEGER NOT NULL REFERENCES identities (id) ON DELETE CASCADE,
    member_id   INTEGER NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    PRIMARY KEY (identity_id, member_id)
);
CREATE INDEX identity_members_member_id ON identity_members (member_id);

-- +goose Down
DROP TABLE identity_members;
DROP TABLE identities;
