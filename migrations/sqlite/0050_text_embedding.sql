-- +goose Up
-- Models that embed texts. A CHECK cannot be changed in place.
ALTER TABLE deployments ADD COLUMN new_task TEXT NOT NULL DEFAULT 'text-generation'
    CHECK (new_task IN ('text-generation', 'image-classification', 'text-embedding'));
UPDATE deployments SET new_task = task;
ALTER TABLE deployments DROP COLUMN task;
ALTER TABLE deployments RENAME COLUMN new_task TO task;

-- +goose Down
-- An earlier version does not serve these models, and stops them.
UPDATE deployments SET updating = FALSE, fallback_id = NULL;
UPDATE deployments SET state = 'stopping' WHERE task = 'text-embedding' AND state NOT IN ('stopped', 'failed');
UPDATE holders SET phase = 'ending' WHERE id IN (SELECT holder_id FROM deployments WHERE task = 'text-embedding' AND state = 'stopping');
ALTER TABLE deployments ADD COLUMN old_task TEXT NOT NULL DEFAULT 'text-generation'
    CHECK (old_task IN ('text-generation', 'image-classification'));
UPDATE deployments SET old_task = task WHERE task <> 'text-embedding';
ALTER TABLE deployments DROP COLUMN task;
ALTER TABLE deployments RENAME COLUMN old_task TO task;
