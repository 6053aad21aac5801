package store_test

import (
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// What projects use of storage is what their files have, in whole MiB; of one without files nothing.
func TestProjectSumsCountFiles(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w, other := newWorld(t, s), addWorld(t, s, "other")
		storetest.InTx(t, s, func(q *store.Queries) error {
			return q.AddStorageUse(w.project.ID, models.StorageChange{Bytes: models.StorageShares{w.member.ID: 5<<20 + 1}})
		})
		sums, err := s.Read(t.Context()).ProjectSums([]int64{w.project.ID, other.project.ID})
		if err != nil || sums[w.project.ID].InUse.StorageMiB != 6 || sums[other.project.ID].InUse.StorageMiB != 0 || sums[other.project.ID].Members != 1 {
			t.Errorf("%+v, %v", sums, err)
		}
	})
}
