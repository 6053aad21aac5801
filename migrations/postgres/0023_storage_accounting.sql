-- +goose Up
-- The bytes of each member's files, and the measurement that compares the use with the
-- files: scan_path is how far it has come, scanned what it has found until there.
CREATE TABLE member_storage_use (
    member_id    BIGINT PRIMARY KEY REFERENCES members (id) ON DELETE CASCADE,
    used         BIGINT NOT NULL DEFAULT 0 CHECK (used >= 0),
    scanned      BIGINT NOT NULL DEFAULT 0,
    read_only_at TIMESTAMPTZ -- over the limit: mounts are read-only from then on
);
ALTER TABLE storage_use ADD COLUMN scan_path BYTEA; -- NULL: none is in progress
ALTER TABLE storage_use ADD COLUMN scanned BIGINT NOT NULL DEFAULT 0;
ALTER TABLE storage_use ADD COLUMN read_only_at TIMESTAMPTZ; -- over the quota

ALTER TABLE file_operations ADD COLUMN member_id BIGINT NOT NULL DEFAULT 0; -- whose bytes it writes; 0: the project's
CREATE INDEX file_operations_member ON file_operations (member_id);

-- +goose Down
DROP INDEX file_operations_member;
ALTER TABLE file_operations DROP COLUMN member_id;
ALTER TABLE storage_use DROP COLUMN read_only_at;
ALTER TABLE storage_use DROP COLUMN scanned;
ALTER TABLE storage_use DROP COLUMN scan_path;
DROP TABLE member_storage_use;
