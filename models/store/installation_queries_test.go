package store_test

import (
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// What file operations after the backup have left is named by their ids: a restored database does not use them again.
func TestRestoredDatabaseUsesNoFileIDAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w, last := newWorld(t, s), int64(0)
		for i := range 3 {
			storetest.InTx(t, s, func(q *store.Queries) error {
				if i != 1 { // also in a database without an operation
					_, err := q.NextGeneration(q.Now())
					return err
				}
				return nil
			})
			o := models.FileOperation{ProjectID: w.project.ID, Kind: "write", Path: "/a", ExpiresAt: s.Now()}
			storetest.InTx(t, s, func(q *store.Queries) error { return q.CreateFileOperation(&o) })
			if far := o.ID-last >= 1<<40; far != (i != 1) {
				t.Errorf("operation %d after %d", o.ID, last)
			}
			last = o.ID
		}
	})
}
