-- +goose Up
-- Who was told how many days before which end; 0 is at the end itself. An end
-- that is moved is another end. The thing is a project or a member.
CREATE TABLE period_notices (
    kind     TEXT NOT NULL CHECK (kind IN ('project', 'member')),
    thing_id INTEGER NOT NULL,
    ends_at  DATETIME NOT NULL,
    days     INTEGER NOT NULL CHECK (days IN (0, 1, 7)),
    told_at  DATETIME NOT NULL,
    PRIMARY KEY (kind, thing_id, ends_at, days)
);
CREATE INDEX projects_ends_at ON projects (ends_at) WHERE ends_at IS NOT NULL;
CREATE INDEX members_until ON members (until) WHERE until IS NOT NULL;

-- What was over before there were such notices is no news.
INSERT INTO period_notices (kind, thing_id, ends_at, days, told_at)
SELECT 'project', id, ends_at, 0, ends_at FROM projects WHERE ends_at <= CURRENT_TIMESTAMP;
INSERT INTO period_notices (kind, thing_id, ends_at, days, told_at)
SELECT 'member', id, until, 0, until FROM members WHERE until <= CURRENT_TIMESTAMP;

-- Of which project's end, or of whose membership there, a notice tells.
ALTER TABLE notices ADD COLUMN project_id INTEGER;

-- Whose directory was given to whom, when its owner had left.
CREATE TABLE handovers (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id   INTEGER NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    member_id    INTEGER NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    to_member_id INTEGER NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    by_id        INTEGER REFERENCES users (id),
    at           DATETIME NOT NULL,
    CONSTRAINT handovers_member UNIQUE (member_id),
    CONSTRAINT handovers_other CHECK (member_id <> to_member_id)
);
CREATE INDEX handovers_to ON handovers (to_member_id);

-- +goose Down
DROP TABLE handovers;
ALTER TABLE notices DROP COLUMN project_id;
DROP INDEX members_until;
DROP INDEX projects_ends_at;
DROP TABLE period_notices;
