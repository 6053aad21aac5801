package store

import (
	"context"
	"database/sql"

	"gorm.io/gorm"
)

// snapshot is a reading transaction, in one goroutine, with what was read in it and holds
// until its end.
type snapshot struct {
	tx     *gorm.DB
	cached map[any]any
}

// once returns what read returns. In a snapshot it is read once for each key.
func once[K comparable, V any](in *snapshot, key K, read func() (V, error)) (V, error) {
	if in == nil {
		return read()
	}
	if value, ok := in.cached[key].(V); ok {
		return value, nil
	}
	value, err := read()
	if err == nil {
		in.cached[key] = value
	}
	return value, err
}

// snapshotKey finds in a context the snapshot of a store.
type snapshotKey struct{ store *Store }

// InSnapshot runs fn with a context in which everything that is read from s sees one
// state of the database, whichever service reads it. It takes no locks and waits for
// none. In it a [Cache] has nothing of another time, and [Store.InTx] fails: a second
// connection may never come free while each of many readers keeps one. For that reason,
// too, snapshots have half of the connections at most; others wait until one ends, or for
// the end of ctx. fn reads in one goroutine.
func (s *Store) InSnapshot(ctx context.Context, fn func(context.Context) error) error {
	if s.snapshot(ctx) != nil {
		return fn(ctx)
	}
	select {
	case s.snapshots <- struct{}{}:
		defer func() { <-s.snapshots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.reader(ctx).Transaction(func(tx *gorm.DB) error {
		return fn(context.WithValue(ctx, snapshotKey{s}, &snapshot{tx: tx, cached: map[any]any{}}))
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

// Snapshot is InSnapshot for queries; fn must not write.
func (s *Store) Snapshot(ctx context.Context, fn func(*Queries) error) error {
	return s.InSnapshot(ctx, func(ctx context.Context) error { return fn(s.Read(ctx)) })
}

// snapshot is the snapshot that ctx is in, or nil.
func (s *Store) snapshot(ctx context.Context) *snapshot {
	in, _ := ctx.Value(snapshotKey{s}).(*snapshot)
	return in
}
