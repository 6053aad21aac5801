-- +goose Up
-- Which installation this database is of. Each restore of a backup is a further generation: what
-- earlier ones have started belongs to them.
CREATE TABLE installation (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    uid         TEXT NOT NULL,
    generation  INTEGER NOT NULL DEFAULT 1 CHECK (generation > 0),
    created_at  DATETIME NOT NULL,
    backup_at   DATETIME,
    restored_at DATETIME
);
INSERT INTO installation (id, uid, created_at) VALUES (1, lower(hex(randomblob(16))), strftime('%Y-%m-%d %H:%M:%S+00:00', 'now'));

-- +goose Down
DROP TABLE installation;
