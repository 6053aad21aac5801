-- +goose Up
-- Roles permit one of four standard sets, or a list of their own.
ALTER TABLE roles ADD COLUMN word TEXT NOT NULL DEFAULT 'member'
    CHECK (word IN ('owner', 'manager', 'member', 'viewer', 'custom'));
UPDATE roles SET word = permission;
ALTER TABLE roles DROP COLUMN permission;
ALTER TABLE roles RENAME COLUMN word TO permission;
ALTER TABLE roles ADD COLUMN permissions TEXT NOT NULL DEFAULT '[]'; -- names, as JSON; of custom roles

-- An auditor sees everything on the platform and changes nothing.
ALTER TABLE users ADD COLUMN auditor BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
-- Owners become managers; viewers and those with a list of their own become
-- members, who may launch workspaces. There are no auditors any more.
ALTER TABLE users DROP COLUMN auditor;
ALTER TABLE roles DROP COLUMN permissions;
ALTER TABLE roles ADD COLUMN word TEXT NOT NULL DEFAULT 'member' CHECK (word IN ('manager', 'member'));
UPDATE roles SET word = 'manager' WHERE permission IN ('manager', 'owner');
ALTER TABLE roles DROP COLUMN permission;
ALTER TABLE roles RENAME COLUMN word TO permission;
