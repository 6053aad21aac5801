-- +goose Up
-- Every entry of the audit says from which address it came and by what its
-- actor spoke, and holds the hash of the entry before it. The entries are
-- numbered without gaps from here on; those that are there already get their
-- hashes when the first server of this version starts.
ALTER TABLE audit_entries ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_entries ADD COLUMN via TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_entries ADD COLUMN previous TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_entries ADD COLUMN hash TEXT NOT NULL DEFAULT '';

-- In two steps, so that no number is taken twice on the way.
UPDATE audit_entries SET id = -n.number
    FROM (SELECT id, row_number() OVER (ORDER BY id) AS number FROM audit_entries) n WHERE n.id = audit_entries.id;
UPDATE audit_entries SET id = -id;

-- Number and hash of the newest entry, and the lock under which the next one
-- is written.
CREATE TABLE audit_head (id INTEGER PRIMARY KEY CHECK (id = 1), number INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO audit_head (id, number, hash) VALUES (1, 0, '');

-- The newest entries first, whatever they are filtered by.
DROP INDEX audit_entries_project;
CREATE INDEX audit_entries_at ON audit_entries (at, id);
CREATE INDEX audit_entries_actor ON audit_entries (actor, at, id);
CREATE INDEX audit_entries_action ON audit_entries (action, at, id);
CREATE INDEX audit_entries_object ON audit_entries (object, at, id);
CREATE INDEX audit_entries_object_id ON audit_entries (object_id, object, at, id);
CREATE INDEX audit_entries_project ON audit_entries (project_id, at, id);

-- What is written stays. An entry is changed once, to get its hash. The second
-- half of the first trigger is for INSERT OR REPLACE, which deletes unseen.
-- +goose StatementBegin
CREATE TRIGGER audit_entries_insert BEFORE INSERT ON audit_entries
    WHEN NEW.hash = '' OR EXISTS (SELECT 1 FROM audit_entries WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_entries_update BEFORE UPDATE ON audit_entries WHEN OLD.hash <> ''
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_entries_delete BEFORE DELETE ON audit_entries
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_head_insert BEFORE INSERT ON audit_head
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_head_update BEFORE UPDATE ON audit_head WHEN NEW.number <= OLD.number
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_head_delete BEFORE DELETE ON audit_head
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER audit_head_delete;
DROP TRIGGER audit_head_update;
DROP TRIGGER audit_head_insert;
DROP TRIGGER audit_entries_delete;
DROP TRIGGER audit_entries_update;
DROP TRIGGER audit_entries_insert;
DROP INDEX audit_entries_project;
DROP INDEX audit_entries_object_id;
DROP INDEX audit_entries_object;
DROP INDEX audit_entries_action;
DROP INDEX audit_entries_actor;
DROP INDEX audit_entries_at;
CREATE INDEX audit_entries_project ON audit_entries (project_id, id);
DROP TABLE audit_head;
ALTER TABLE audit_entries DROP COLUMN hash;
ALTER TABLE audit_entries DROP COLUMN previous;
ALTER TABLE audit_entries DROP COLUMN via;
ALTER TABLE audit_entries DROP COLUMN address;
