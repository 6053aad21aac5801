package providers_test

import (
	"context"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

// A sweep that no longer leads marks nobody lost, and announces no ends.
func TestAFormerLeaderSweepsNoProviders(t *testing.T) {
	storetest.EachTakeover(t, 2, func(t *testing.T, s *store.Store) func(context.Context) error {
		o := pooltest.New(t, s)
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
		if _, err := o.Providers.Recall(o.Ctx, o.Root, o.Provider(t).ID, providers.RecallInput{GraceMinutes: 30}); err != nil {
			t.Fatal(err)
		}
		storetest.InTx(t, s, func(q *store.Queries) error { // as if it had not been announced
			shares, err := q.OpenSharesAmong(store.AllMachines)
			if err != nil {
				return err
			}
			return q.AnnounceShareEnd(shares[0].ID, nil, models.Text{})
		})
		o.Clock.Advance(30 * time.Second)
		return o.Providers.Sweep
	})
}
