-- +goose Up
-- An invitation of an email address to the platform, or to a project with a role.
-- What lets in are its one-time tokens, which contain a hash of the link.
CREATE TABLE invitations (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    email         TEXT NOT NULL,
    project_id    INTEGER REFERENCES projects (id) ON DELETE CASCADE,
    role_id       INTEGER REFERENCES roles (id) ON DELETE SET NULL, -- NULL also once the role is deleted
    admin         BOOLEAN NOT NULL DEFAULT FALSE,
    auditor       BOOLEAN NOT NULL DEFAULT FALSE,
    department_id INTEGER REFERENCES departments (id) ON DELETE SET NULL,
    inviter_id    INTEGER NOT NULL REFERENCES users (id),
    created_at    DATETIME NOT NULL,
    expires_at    DATETIME NOT NULL,
    accepted_at   DATETIME,
    revoked_at    DATETIME,
    problem       TEXT NOT NULL DEFAULT '', -- why the last acceptance was refused
    CHECK (accepted_at IS NULL OR revoked_at IS NULL)
);
-- One open invitation of an address for each project, and one for the platform.
CREATE UNIQUE INDEX invitations_open ON invitations (email, COALESCE(project_id, 0)) WHERE accepted_at IS NULL AND revoked_at IS NULL;
CREATE INDEX invitations_project ON invitations (project_id, id);
CREATE INDEX invitations_inviter ON invitations (inviter_id, created_at);
CREATE INDEX invitations_email ON invitations (email, created_at);
CREATE INDEX invitations_role ON invitations (role_id);
CREATE INDEX invitations_department ON invitations (department_id);

CREATE TABLE new_tokens (
    hash         TEXT PRIMARY KEY,
    purpose      TEXT NOT NULL CHECK (purpose IN ('setup', 'open', 'invitation', 'password')),
    user_id      INTEGER REFERENCES users (id) ON DELETE CASCADE,
    workspace_id INTEGER REFERENCES workspaces (id) ON DELETE CASCADE,
    session      TEXT NOT NULL DEFAULT '',
    expires_at   DATETIME NOT NULL,
    invitation_id INTEGER REFERENCES invitations (id) ON DELETE CASCADE
);
INSERT INTO new_tokens (hash, purpose, user_id, workspace_id, session, expires_at)
    SELECT hash, purpose, user_id, workspace_id, session, expires_at FROM one_time_tokens;
DROP TABLE one_time_tokens;
ALTER TABLE new_tokens RENAME TO one_time_tokens;
CREATE INDEX one_time_tokens_expires_at ON one_time_tokens (expires_at);
CREATE INDEX one_time_tokens_invitation ON one_time_tokens (invitation_id) WHERE invitation_id IS NOT NULL;

-- An email to an address without an account has no notification.
CREATE TABLE new_deliveries (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    key             TEXT NOT NULL UNIQUE,
    webhook_id      INTEGER REFERENCES webhooks (id) ON DELETE CASCADE,
    notification_id INTEGER REFERENCES notifications (id) ON DELETE CASCADE,
    receiver        TEXT NOT NULL,
    kind            TEXT NOT NULL,
    body            TEXT NOT NULL DEFAULT '',
    state           TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed', 'given_up')),
    attempts        INTEGER NOT NULL DEFAULT 0,
    refused         BOOLEAN NOT NULL DEFAULT FALSE,
    status          INTEGER NOT NULL DEFAULT 0,
    response        TEXT NOT NULL DEFAULT '',
    problem         TEXT NOT NULL DEFAULT '',
    queued_at       DATETIME NOT NULL,
    next_at         DATETIME NOT NULL,
    lease_until     DATETIME,
    created_at      DATETIME NOT NULL,
    finished_at     DATETIME,
    CHECK (webhook_id IS NULL OR notification_id IS NULL)
);
INSERT INTO new_deliveries SELECT * FROM deliveries;
DROP TABLE deliveries;
ALTER TABLE new_deliveries RENAME TO deliveries;
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE finished_at IS NULL;
CREATE INDEX deliveries_queue ON deliveries (receiver, id) WHERE finished_at IS NULL;
CREATE INDEX deliveries_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_notification ON deliveries (notification_id);
CREATE INDEX deliveries_finished_at ON deliveries (finished_at) WHERE finished_at IS NOT NULL;

-- +goose Down
CREATE TABLE new_deliveries (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    key             TEXT NOT NULL UNIQUE,
    webhook_id      INTEGER REFERENCES webhooks (id) ON DELETE CASCADE,
    notification_id INTEGER REFERENCES notifications (id) ON DELETE CASCADE,
    receiver        TEXT NOT NULL,
    kind            TEXT NOT NULL,
    body            TEXT NOT NULL DEFAULT '',
    state           TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed', 'given_up')),
    attempts        INTEGER NOT NULL DEFAULT 0,
    refused         BOOLEAN NOT NULL DEFAULT FALSE,
    status          INTEGER NOT NULL DEFAULT 0,
    response        TEXT NOT NULL DEFAULT '',
    problem         TEXT NOT NULL DEFAULT '',
    queued_at       DATETIME NOT NULL,
    next_at         DATETIME NOT NULL,
    lease_until     DATETIME,
    created_at      DATETIME NOT NULL,
    finished_at     DATETIME,
    CHECK ((webhook_id IS NULL) <> (notification_id IS NULL))
);
INSERT INTO new_deliveries SELECT * FROM deliveries WHERE webhook_id IS NOT NULL OR notification_id IS NOT NULL;
DROP TABLE deliveries;
ALTER TABLE new_deliveries RENAME TO deliveries;
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE finished_at IS NULL;
CREATE INDEX deliveries_queue ON deliveries (receiver, id) WHERE finished_at IS NULL;
CREATE INDEX deliveries_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_notification ON deliveries (notification_id);
CREATE INDEX deliveries_finished_at ON deliveries (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE new_tokens (
    hash         TEXT PRIMARY KEY,
    purpose      TEXT NOT NULL CHECK (purpose IN ('setup', 'open')),
    user_id      INTEGER REFERENCES users (id) ON DELETE CASCADE,
    workspace_id INTEGER REFERENCES workspaces (id) ON DELETE CASCADE,
    session      TEXT NOT NULL DEFAULT '',
    expires_at   DATETIME NOT NULL
);
INSERT INTO new_tokens (hash, purpose, user_id, workspace_id, session, expires_at)
    SELECT hash, purpose, user_id, workspace_id, session, expires_at FROM one_time_tokens WHERE purpose IN ('setup', 'open');
DROP TABLE one_time_tokens;
ALTER TABLE new_tokens RENAME TO one_time_tokens;
CREATE INDEX one_time_tokens_expires_at ON one_time_tokens (expires_at);
DROP TABLE invitations;
