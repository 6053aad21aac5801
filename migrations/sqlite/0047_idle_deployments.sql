-- +goose Up
-- A deployment without requests can be idle: it has no shares, and is deployed again by the next request.
DROP INDEX deployments_live;
ALTER TABLE deployments ADD COLUMN new_state TEXT NOT NULL DEFAULT 'deploying'
    CHECK (new_state IN ('deploying', 'serving', 'idle', 'stopping', 'stopped', 'failed'));
UPDATE deployments SET new_state = state;
ALTER TABLE deployments DROP COLUMN state;
ALTER TABLE deployments RENAME COLUMN new_state TO state;
CREATE INDEX deployments_live ON deployments (state, id) WHERE state NOT IN ('stopped', 'failed');

-- +goose Down
-- An earlier version ends what is idle.
DROP INDEX deployments_live;
ALTER TABLE deployments ADD COLUMN old_state TEXT NOT NULL DEFAULT 'deploying'
    CHECK (old_state IN ('deploying', 'serving', 'stopping', 'stopped', 'failed'));
UPDATE deployments SET old_state = CASE state WHEN 'idle' THEN 'stopping' ELSE state END;
UPDATE holders SET phase = 'ending' WHERE id IN (SELECT holder_id FROM deployments WHERE state = 'idle');
ALTER TABLE deployments DROP COLUMN state;
ALTER TABLE deployments RENAME COLUMN old_state TO state;
CREATE INDEX deployments_live ON deployments (state, id) WHERE state NOT IN ('stopped', 'failed');
