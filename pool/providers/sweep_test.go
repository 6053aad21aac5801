package providers_test

import (
	"context"
	"testing"
	"time"

	"weir/models"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

func TestLostAndBack(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		inUse := o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
		o.Clock.Advance(15 * time.Second)
		o.Sweep(t)
		if p := o.Provider(t); p.State != models.ProviderOnline {
			t.Fatalf("%s after 15 seconds", p.State)
		}
		o.Clock.Advance(15 * time.Second)
		o.Sweep(t)
		o.Sweep(t)
		if p := o.Provider(t); p.State != models.ProviderLost || p.Reason.Empty() {
			t.Fatalf("%+v", p)
		}
		if n := o.CountEvents(t, inUse, "is lost"); n != 1 {
			t.Errorf("the holder was told %d times", n)
		}
		o.WantClaim(t, m, pooltest.Half, models.OutcomeDelayed)
		drained, err := o.Providers.Drain(o.Ctx, o.Root, o.Provider(t).ID, 0)
		if err != nil || drained.State != models.ProviderLost {
			t.Errorf("drained while lost: %+v, %v", drained, err)
		}
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(pooltest.Machine(1))})
		if p := o.Provider(t); p.State != models.ProviderDraining || o.CountEvents(t, inUse, "is responding again") != 1 {
			t.Errorf("back: %+v", p)
		}
		if _, err := o.Providers.Resume(o.Ctx, o.Root, drained.ID, 0); err != nil {
			t.Fatal(err)
		}
		o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
		o.WantClaim(t, m, pooltest.Half, models.OutcomeDelayed) // what was held was kept
	})
}

// While the database is away no heartbeat is received.
func TestNobodyIsLostBecauseTheDatabaseWasAway(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		o.Enlist(t, pooltest.Machine(1))
		o.Clock.Advance(time.Hour)
		away, cancel := context.WithCancel(o.Ctx)
		cancel()
		if err := o.Providers.Sweep(away); err == nil {
			t.Fatal("the sweep reads without a database")
		}
		for _, c := range []struct {
			wait time.Duration
			want string
		}{{0, models.ProviderOnline}, {10 * time.Second, models.ProviderOnline}, {20 * time.Second, models.ProviderLost}} {
			o.Clock.Advance(c.wait)
			if err := o.Providers.Sweep(o.Ctx); err != nil {
				t.Fatal(err)
			}
			if p := o.Provider(t); p.State != c.want {
				t.Errorf("%s after another %s; want %s", p.State, c.wait, c.want)
			}
		}
	})
}

// A portal that was away for long finds everybody's last word old.
func TestNobodyIsLostBecauseThePortalWasAway(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		o.Enlist(t, pooltest.Machine(1))
		o.Clock.Advance(time.Hour)
		restarted := providers.New(o.Store, o.Access, nil)
		if err := restarted.Sweep(o.Ctx); err != nil {
			t.Fatal(err)
		}
		if p := o.Provider(t); p.State != models.ProviderOnline {
			t.Errorf("%s at once", p.State)
		}
		o.Clock.Advance(time.Minute)
		if err := restarted.Sweep(o.Ctx); err != nil {
			t.Fatal(err)
		}
		if p := o.Provider(t); p.State != models.ProviderLost {
			t.Errorf("%s after a silent minute", p.State)
		}
	})
}
