-- +goose Up
-- Which providers each version of the pool has changed, so that a server reads
-- only these again; provider 0 stands for all of them.
CREATE TABLE pool_changes (
    version BIGINT NOT NULL,
    provider_id BIGINT NOT NULL,
    PRIMARY KEY (version, provider_id)
);

-- +goose Down
DROP TABLE pool_changes;
