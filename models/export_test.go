package models

import (
	"context"

	"gorm.io/gorm"
)

// StandUnderLock holds the audit's head and does nothing, until done is
// closed.
func (s *Store) StandUnderLock(ctx context.Context, held chan<- struct{}, done <-chan struct{}) error {
	return s.InTx(ctx, func(q *Queries) error {
		_, err := q.lockAuditHead()
		close(held)
		<-done
		return err
	})
}

// Watch tells a test every query that reads outside transactions.
func (s *Store) Watch(seen func(sql string, args []any)) error {
	return s.read.Callback().Query().After("gorm:query").Register("test:watch", func(db *gorm.DB) {
		seen(db.Statement.SQL.String(), db.Statement.Vars)
	})
}
