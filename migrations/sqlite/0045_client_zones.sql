-- +goose Up
-- The measured latency between a provider and a client zone, in microseconds.
CREATE TABLE provider_latencies (
    provider_id INTEGER NOT NULL REFERENCES providers (id),
    zone        TEXT NOT NULL,
    micros      INTEGER NOT NULL CHECK (micros > 0),
    measured_at DATETIME NOT NULL,
    PRIMARY KEY (provider_id, zone)
);
-- The client zone that the machine of a reservation is to be near; empty: none.
ALTER TABLE reservations ADD COLUMN client_zone TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE reservations DROP COLUMN client_zone;
DROP TABLE provider_latencies;
