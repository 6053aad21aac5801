package broker_test

import (
	"context"
	"testing"
	"time"

	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/pooltest"
)

// A broker that no longer leads begins, expires, ends and cancels no reservation.
func TestAFormerLeaderAdvancesNothing(t *testing.T) {
	storetest.EachTakeover(t, 3, func(t *testing.T, s *store.Store) func(context.Context) error {
		o := newWorld(t, pooltest.New(t, s), 3)
		in := o.ask(100)
		o.reserve(t, in) // will expire
		in.From = o.hour(1)
		o.reserve(t, in) // will begin
		m, actor := o.team(t, "speech")
		in = o.ask(100)
		in.ProjectID, in.From = m.ProjectID, o.hour(5)
		if _, err := o.Reserve(o.Ctx, actor, in); err != nil {
			t.Fatal(err)
		}
		until := s.Now().Add(time.Minute)
		o.EndMembership(t, m, &until)
		o.Clock.Advance(time.Hour)
		return o.Advance
	})
}
