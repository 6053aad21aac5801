-- +goose Up
-- What the model of a deployment does.
ALTER TABLE deployments ADD COLUMN task TEXT NOT NULL DEFAULT 'text-generation'
    CHECK (task IN ('text-generation', 'image-classification'));

-- +goose Down
-- An earlier version serves text only, and would compute what an update replaces with a program of its own.
UPDATE deployments SET updating = FALSE, fallback_id = NULL;
UPDATE deployments SET state = 'stopping' WHERE task <> 'text-generation' AND state NOT IN ('stopped', 'failed');
UPDATE holders SET phase = 'ending' WHERE id IN (SELECT holder_id FROM deployments WHERE task <> 'text-generation' AND state = 'stopping');
ALTER TABLE deployments DROP COLUMN task;
