package store

import (
	"context"

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

// snapshot is the snapshot that ctx is in, or nil.
func (s *Store) snapshot(ctx context.Context) *snapshot {
	in, _ := ctx.Value(snapshotKey{s}).(*snapshot)
	return in
}
