package store

import (
	"context"
	"database/sql"

	"gorm.io/gorm"
)

// Snapshot runs fn in a read-only transaction that sees one state of the
// database. It takes no locks and waits for none; fn must not write.
func (s *Store) Snapshot(ctx context.Context, fn func(*Queries) error) error {
	return s.reader(ctx).Transaction(func(tx *gorm.DB) error {
		q := s.Read(ctx)
		q.db = tx
		return fn(q)
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}
