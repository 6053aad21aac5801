-- +goose Up
-- What is reserved of devices for spans of time, and what was asked for.
CREATE TABLE reservations (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id       INTEGER NOT NULL REFERENCES projects (id),
    member_id        INTEGER NOT NULL REFERENCES members (id),
    user_id          INTEGER NOT NULL REFERENCES users (id),
    state            TEXT NOT NULL,
    outcome          TEXT NOT NULL,
    reason           TEXT NOT NULL DEFAULT '',
    gpus             INTEGER NOT NULL,
    cores            INTEGER NOT NULL,
    gpu_memory_mib   INTEGER NOT NULL,
    gpu_model        TEXT NOT NULL DEFAULT '',
    duration_minutes INTEGER NOT NULL,
    window_from      DATETIME NOT NULL,
    window_until     DATETIME NOT NULL,
    accept_part      BOOLEAN NOT NULL,
    accept_later     BOOLEAN NOT NULL,
    starts_at          DATETIME NOT NULL,
    ends_at         DATETIME NOT NULL,
    version          INTEGER NOT NULL,
    created_at       DATETIME NOT NULL,
    used_at          DATETIME,
    ended_at         DATETIME
);
CREATE INDEX reservations_project_id ON reservations (project_id, id);
CREATE INDEX reservations_live ON reservations (starts_at) WHERE ended_at IS NULL;

CREATE TABLE reservation_grants (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    reservation_id INTEGER NOT NULL REFERENCES reservations (id),
    device_id      INTEGER NOT NULL REFERENCES devices (id),
    cores          INTEGER NOT NULL,
    memory_mib     INTEGER NOT NULL,
    starts_at        DATETIME NOT NULL,
    ends_at       DATETIME NOT NULL
);
CREATE INDEX reservation_grants_reservation_id ON reservation_grants (reservation_id);
CREATE INDEX reservation_grants_device_id ON reservation_grants (device_id, ends_at);

-- The grant of a reservation in which a share is used.
ALTER TABLE shares ADD COLUMN grant_id INTEGER;

-- +goose Down
ALTER TABLE shares DROP COLUMN grant_id;
DROP TABLE reservation_grants;
DROP TABLE reservations;
