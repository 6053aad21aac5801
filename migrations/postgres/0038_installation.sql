-- +goose Up
-- Which installation this database is of. Each restore of a backup is a further generation: what
-- earlier ones have started belongs to them.
CREATE TABLE installation (
    id          BIGINT PRIMARY KEY CHECK (id = 1),
    uid         TEXT NOT NULL,
    generation  BIGINT NOT NULL DEFAULT 1 CHECK (generation > 0),
    created_at  TIMESTAMPTZ NOT NULL,
    backup_at   TIMESTAMPTZ,
    restored_at TIMESTAMPTZ
);
INSERT INTO installation (id, uid, created_at) VALUES (1, replace(gen_random_uuid()::text, '-', ''), date_trunc('second', now()));

-- +goose Down
DROP TABLE installation;
