-- +goose Up
-- A machine says who it is (a digest of its identity); what an agent reports
-- beyond its authorisation stands in reported_code until somebody decides.
ALTER TABLE providers ADD COLUMN machine TEXT NOT NULL DEFAULT '';
ALTER TABLE providers ADD COLUMN agent BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE providers ADD COLUMN gpu_code TEXT NOT NULL DEFAULT '';
ALTER TABLE providers ADD COLUMN reported_code TEXT NOT NULL DEFAULT '';
ALTER TABLE providers ADD COLUMN owner_id INTEGER REFERENCES users (id);
ALTER TABLE providers ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE providers ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE providers ADD COLUMN draining BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE providers ADD COLUMN recall_at DATETIME;
ALTER TABLE providers ADD COLUMN recall_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE providers ADD COLUMN terms TEXT NOT NULL DEFAULT '{}';
CREATE UNIQUE INDEX providers_machine ON providers (machine) WHERE machine <> '';

ALTER TABLE devices ADD COLUMN sharing TEXT NOT NULL DEFAULT 'time-slicing' CHECK (sharing IN ('exclusive', 'time-slicing', 'mps', 'mig'));
ALTER TABLE devices ADD COLUMN applied TEXT NOT NULL DEFAULT '';
ALTER TABLE devices ADD COLUMN layout TEXT NOT NULL DEFAULT '[]';
ALTER TABLE devices ADD COLUMN parent_id INTEGER REFERENCES devices (id);
ALTER TABLE devices ADD COLUMN profile TEXT NOT NULL DEFAULT '';
ALTER TABLE devices ADD COLUMN cores INTEGER NOT NULL DEFAULT 100 CHECK (cores BETWEEN 1 AND 100);
ALTER TABLE devices ADD COLUMN mig_profiles TEXT NOT NULL DEFAULT '[]';
ALTER TABLE devices ADD COLUMN numa INTEGER NOT NULL DEFAULT -1;
ALTER TABLE devices ADD COLUMN peers TEXT NOT NULL DEFAULT '[]';
ALTER TABLE devices ADD COLUMN ecc TEXT NOT NULL DEFAULT '';
ALTER TABLE devices ADD COLUMN ecc_errors INTEGER NOT NULL DEFAULT 0;
ALTER TABLE devices ADD COLUMN xid INTEGER NOT NULL DEFAULT 0;
ALTER TABLE devices ADD COLUMN xid_at DATETIME;
ALTER TABLE devices ADD COLUMN trouble TEXT NOT NULL DEFAULT '';
UPDATE devices SET sharing = 'exclusive' WHERE exclusive;
ALTER TABLE devices DROP COLUMN exclusive;
CREATE INDEX devices_provider ON devices (provider_id);

-- What the holder was told of the end that others set to the share.
ALTER TABLE shares ADD COLUMN ends_at DATETIME;
ALTER TABLE shares ADD COLUMN end_reason TEXT NOT NULL DEFAULT '';
CREATE INDEX shares_ends_at ON shares (ends_at) WHERE until_at IS NULL AND ends_at IS NOT NULL;

-- In the queue the higher priority goes first.
ALTER TABLE projects ADD COLUMN priority INTEGER NOT NULL DEFAULT 50 CHECK (priority BETWEEN 0 AND 100);

-- What was asked for, in numbers that can be counted.
ALTER TABLE decisions ADD COLUMN gpus INTEGER NOT NULL DEFAULT 0;
ALTER TABLE decisions ADD COLUMN cores INTEGER NOT NULL DEFAULT 0;
ALTER TABLE decisions ADD COLUMN gpu_model TEXT NOT NULL DEFAULT '';
CREATE INDEX decisions_outcome ON decisions (outcome, at);

-- One live agent speaks for a provider. A beat carries the token that the
-- last answer gave; two agents with one key soon disagree about it.
CREATE TABLE agents (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    provider_id   INTEGER NOT NULL REFERENCES providers (id),
    key_hash      TEXT NOT NULL,
    serial        TEXT NOT NULL,
    next_key_hash TEXT NOT NULL DEFAULT '',
    next_serial   TEXT NOT NULL DEFAULT '',
    token_hash    TEXT NOT NULL DEFAULT '',
    previous_hash TEXT NOT NULL DEFAULT '',
    issued_at     DATETIME NOT NULL,
    expires_at    DATETIME NOT NULL,
    created_at    DATETIME NOT NULL,
    revoked_at    DATETIME,
    revoked_why   TEXT NOT NULL DEFAULT '',
    CONSTRAINT agents_serial UNIQUE (serial)
);
CREATE UNIQUE INDEX agents_live ON agents (provider_id) WHERE revoked_at IS NULL;

CREATE TABLE authorizations (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    hash        TEXT NOT NULL,
    gpu_code    TEXT NOT NULL,
    name        TEXT NOT NULL DEFAULT '',
    owner_id    INTEGER NOT NULL REFERENCES users (id),
    issued_by   INTEGER NOT NULL REFERENCES users (id),
    created_at  DATETIME NOT NULL,
    expires_at  DATETIME NOT NULL,
    redeemed_at DATETIME,
    key_hash    TEXT NOT NULL DEFAULT '',
    agent_id    INTEGER REFERENCES agents (id),
    CONSTRAINT authorizations_hash UNIQUE (hash)
);

-- The last that was measured of a device.
CREATE TABLE device_states (
    device_id         INTEGER PRIMARY KEY NOT NULL REFERENCES devices (id),
    at                DATETIME NOT NULL,
    utilisation       INTEGER NOT NULL,
    memory_used_mib   INTEGER NOT NULL,
    temperature       INTEGER NOT NULL,
    power_mw          INTEGER NOT NULL,
    processes         TEXT NOT NULL DEFAULT '[]'
);

-- Rings of buckets: step seconds wide, slot is the bucket's number modulo the
-- ring's length, so that a device's history never takes more rows than that.
CREATE TABLE telemetry (
    device_id       INTEGER NOT NULL REFERENCES devices (id),
    step            INTEGER NOT NULL,
    slot            INTEGER NOT NULL,
    at              DATETIME NOT NULL,
    samples         INTEGER NOT NULL,
    utilisation_sum INTEGER NOT NULL,
    utilisation_max INTEGER NOT NULL,
    memory_sum      INTEGER NOT NULL,
    memory_max      INTEGER NOT NULL,
    temperature_sum INTEGER NOT NULL,
    temperature_max INTEGER NOT NULL,
    power_sum       INTEGER NOT NULL,
    power_max       INTEGER NOT NULL,
    PRIMARY KEY (device_id, step, slot)
);

-- +goose Down
DROP TABLE telemetry;
DROP TABLE device_states;
DROP TABLE authorizations;
DROP TABLE agents;
DROP INDEX decisions_outcome;
ALTER TABLE decisions DROP COLUMN gpu_model;
ALTER TABLE decisions DROP COLUMN cores;
ALTER TABLE decisions DROP COLUMN gpus;
ALTER TABLE projects DROP COLUMN priority;
DROP INDEX shares_ends_at;
ALTER TABLE shares DROP COLUMN end_reason;
ALTER TABLE shares DROP COLUMN ends_at;
DROP INDEX devices_provider;
ALTER TABLE devices ADD COLUMN exclusive BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE devices SET exclusive = TRUE WHERE sharing = 'exclusive';
ALTER TABLE devices DROP COLUMN trouble;
ALTER TABLE devices DROP COLUMN xid_at;
ALTER TABLE devices DROP COLUMN xid;
ALTER TABLE devices DROP COLUMN ecc_errors;
ALTER TABLE devices DROP COLUMN ecc;
ALTER TABLE devices DROP COLUMN peers;
ALTER TABLE devices DROP COLUMN numa;
ALTER TABLE devices DROP COLUMN mig_profiles;
ALTER TABLE devices DROP COLUMN cores;
ALTER TABLE devices DROP COLUMN profile;
ALTER TABLE devices DROP COLUMN parent_id;
ALTER TABLE devices DROP COLUMN layout;
ALTER TABLE devices DROP COLUMN applied;
ALTER TABLE devices DROP COLUMN sharing;
DROP INDEX providers_machine;
ALTER TABLE providers DROP COLUMN terms;
ALTER TABLE providers DROP COLUMN recall_reason;
ALTER TABLE providers DROP COLUMN recall_at;
ALTER TABLE providers DROP COLUMN draining;
ALTER TABLE providers DROP COLUMN reason;
ALTER TABLE providers DROP COLUMN address;
ALTER TABLE providers DROP COLUMN owner_id;
ALTER TABLE providers DROP COLUMN reported_code;
ALTER TABLE providers DROP COLUMN gpu_code;
ALTER TABLE providers DROP COLUMN agent;
ALTER TABLE providers DROP COLUMN machine;
