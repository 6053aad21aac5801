-- +goose Up
UPDATE quota_requests SET requested = REPLACE(requested, '"mine":', '"assign_to_requester":'), decided = REPLACE(decided, '"mine":', '"assign_to_requester":');

-- +goose Down
UPDATE quota_requests SET requested = REPLACE(requested, '"assign_to_requester":', '"mine":'), decided = REPLACE(decided, '"assign_to_requester":', '"mine":');
