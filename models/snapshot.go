package models

import (
	"context"
	"database/sql"

	"gorm.io/gorm"
)

// Snapshot lets fn read one state of the database: what it finds belongs
// together, whatever others write meanwhile. It waits for nobody and makes
// nobody wait; fn must not write.
func (s *Store) Snapshot(ctx context.Context, fn func(*Queries) error) error {
	return s.read.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		q := s.Read(ctx)
		q.db = tx
		return fn(q)
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}
