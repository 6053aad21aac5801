-- +goose Up
-- Models that embed texts.
ALTER TABLE deployments DROP CONSTRAINT deployments_task_check;
ALTER TABLE deployments ADD CONSTRAINT deployments_task_check
    CHECK (task IN ('text-generation', 'image-classification', 'text-embedding'));

-- +goose Down
-- An earlier version does not serve these models, and stops them.
UPDATE deployments SET updating = FALSE, fallback_id = NULL;
UPDATE deployments SET state = 'stopping' WHERE task = 'text-embedding' AND state NOT IN ('stopped', 'failed');
UPDATE holders SET phase = 'ending' WHERE id IN (SELECT holder_id FROM deployments WHERE task = 'text-embedding' AND state = 'stopping');
UPDATE deployments SET task = 'text-generation' WHERE task = 'text-embedding';
ALTER TABLE deployments DROP CONSTRAINT deployments_task_check;
ALTER TABLE deployments ADD CONSTRAINT deployments_task_check
    CHECK (task IN ('text-generation', 'image-classification'));
