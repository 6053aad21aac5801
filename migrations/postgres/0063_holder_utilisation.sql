-- +goose Up
-- How much workspaces, runs and deployments used of each of their simulated GPUs when that was
-- measured last, in percent of the GPU.
CREATE TABLE holder_utilisation (
    holder_id BIGINT PRIMARY KEY REFERENCES holders (id),
    at        TIMESTAMPTZ NOT NULL,
    percent   BIGINT NOT NULL
);

-- +goose Down
DROP TABLE holder_utilisation;
