-- +goose Up
-- How many requests to a deployment were measured, by the first deployment of its model and in steps of time; step 0: all time.
CREATE TABLE deployment_counts (
    deployment_id INTEGER NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
    step          INTEGER NOT NULL CHECK (step IN (0, 60, 900, 3600)),
    at            DATETIME NOT NULL,
    measure       TEXT NOT NULL,
    bucket        INTEGER NOT NULL DEFAULT 0,
    count         INTEGER NOT NULL,
    millis        INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (deployment_id, step, at, measure, bucket)
);
CREATE INDEX deployment_counts_at ON deployment_counts (step, at);
-- The most bytes that the process of a part has used.
ALTER TABLE deployment_parts ADD COLUMN max_memory INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE deployment_parts DROP COLUMN max_memory;
DROP TABLE deployment_counts;
