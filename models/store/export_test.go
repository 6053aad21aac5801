package store

import (
	"context"
	"database/sql"
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

// Prepared counts the prepared statements of a connection.
func Prepared(t *testing.T, db *sql.DB) (n int) {
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Raw(func(driver any) error {
		n = len(driver.(*sqliteConn).statements)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}
