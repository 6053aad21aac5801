package storage

import (
	"context"
	"testing"

	"weir/models/store"
	"weir/models/store/storetest"
)

// A server that no longer leads records no takeover of files.
func TestAFormerLeaderTakesNoFilesOver(t *testing.T) {
	storetest.EachTakeover(t, 2, func(t *testing.T, s *store.Store) func(context.Context) error {
		w := newWorld(t, s)
		w.oldFiles(t)
		return w.owners(t).Pass
	})
}
