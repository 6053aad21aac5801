package requests_test

import (
	"context"
	"testing"

	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/pooltest"
)

// A server that no longer leads tells nobody of an end.
func TestAFormerLeaderTellsOfNoEnd(t *testing.T) {
	storetest.EachTakeover(t, 2, func(t *testing.T, s *store.Store) func(context.Context) error {
		h := newExample(t, &world{pooltest.New(t, s)})
		end := s.Now().Add(day)
		h.EndProject(t, h.Vision, &end)
		h.EndProject(t, h.NewProject(t, "speech", pooltest.Cores(1)), &end)
		return func(ctx context.Context) error {
			_, err := h.periods().Round(ctx)
			return err
		}
	})
}
