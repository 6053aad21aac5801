-- +goose Up
-- What may have taken rights away, in the order of the commits: whoever has
-- carried out one number has carried out all before it.
CREATE TABLE revocations (
    number INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    at     DATETIME NOT NULL,
    origin TEXT NOT NULL,
    ties   TEXT NOT NULL
);
CREATE INDEX revocations_at ON revocations (at);

-- The servers that pass bytes on, each with the last revocation that it has
-- carried out. One whose beat has stood still for its lease passes nothing.
CREATE TABLE servers (
    id   TEXT PRIMARY KEY NOT NULL,
    beat INTEGER NOT NULL,
    done INTEGER NOT NULL
);

-- +goose Down
DROP TABLE servers;
DROP TABLE revocations;
