-- +goose Up
-- How much workspaces, runs and deployments used of each of their simulated GPUs when that was
-- measured last, in percent of the GPU.
CREATE TABLE holder_utilisation (
    holder_id INTEGER PRIMARY KEY REFERENCES holders (id),
    at        DATETIME NOT NULL,
    percent   INTEGER NOT NULL
);

-- +goose Down
DROP TABLE holder_utilisation;
