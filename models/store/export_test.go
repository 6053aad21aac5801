package store

import (
	"context"
	"database/sql"
	"maps"
	"testing"
)

// LockAudit locks the head of the audit until done is closed.
func (s *Store) LockAudit(ctx context.Context, locked chan<- struct{}, done <-chan struct{}) error {
	return s.InTx(ctx, func(q *Queries) error {
		_, err := q.lockAuditHead()
		close(locked)
		<-done
		return err
	})
}

// Exec executes a statement in the transaction.
func (q *Queries) Exec(sql string) error { return q.db.Exec(sql).Error }

const (
	SQLiteDriver  = sqliteDriver
	MaxStatements = maxStatements
)

// Prepared are the prepared statements of a connection by their text; rows of none are open.
func Prepared(t *testing.T, db *sql.DB) (statements map[string]*sqliteStatement) {
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Raw(func(driver any) error {
		statements = maps.Clone(driver.(*sqliteConn).statements)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for query, s := range statements {
		if s.open {
			t.Error(query, "has open rows")
		}
	}
	return statements
}

// SetFree replaces how the free space of disks is looked up.
func (s *Store) SetFree(free func(dir string) (bytes, files int64, err error)) { s.space.free = free }

// FreeFiles is freeFiles.
var FreeFiles = freeFiles
