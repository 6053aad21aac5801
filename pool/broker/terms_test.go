package broker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

// lends sets the terms of the machine.
func (o *world) lends(t *testing.T, terms models.Terms) {
	t.Helper()
	p := o.Provider(t)
	if _, err := o.Providers.Update(o.Ctx, o.Root, p.ID, providers.ProviderInput{Name: p.Name, Terms: terms}); err != nil {
		t.Fatal(err)
	}
}

// atRisk is how often the member was told that a reservation may not be usable.
func (o *world) atRisk(t *testing.T) (n int) {
	t.Helper()
	list, err := o.Store.Read(o.Ctx).Notifications(o.actor.User.ID, store.Page{Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		if one.Kind == models.NotificationReservationAtRisk && strings.Contains(one.Text.String(), "Your reservation of 1 × 60 GPU cores") {
			n++
		}
	}
	return n
}

// New terms of an owner hold for reservations that were made before: their users are told, and new shares in them
// are bound.
func TestNewTermsBindReservations(t *testing.T) {
	each(t, 2, func(t *testing.T, o *world) {
		other, _ := o.team(t, "speech")
		r := o.reserve(t, o.ask(60))
		gpu := r.Grants[0].DeviceID
		var elsewhere int64
		for _, d := range o.DevicesByUUID(t) {
			if d.ID != gpu {
				elsewhere = d.ID
			}
		}
		hour := []models.Window{{Days: []int{0, 1, 2, 3, 4, 5, 6}, From: "00:00", To: "00:30"}} // the clock stands at 00:00
		for name, c := range map[string]struct {
			terms models.Terms
			most  int64 // GPU cores of the reservation that can be used
			told  int
		}{
			"the project":           {models.Terms{Cores: 60, Devices: []int64{gpu}, Projects: []int64{r.ProjectID}}, 60, 0},
			"another project":       {models.Terms{Projects: []int64{other.ProjectID}}, 0, 1},
			"another GPU":           {models.Terms{Devices: []int64{elsewhere}}, 0, 1},
			"fewer cores":           {models.Terms{Cores: 50}, 50, 1},
			"an end before its own": {models.Terms{Hours: hour}, 60, 1},
		} {
			t.Run(name, func(t *testing.T) {
				before := o.atRisk(t)
				o.lends(t, c.terms)
				o.lends(t, c.terms) // which changes nothing
				if told := o.atRisk(t) - before; told != c.told {
					t.Errorf("the user was told %d times; want %d", told, c.told)
				}
				if c.most < 60 && o.fits(t, r.ID, c.most+1) || c.most > 0 && !o.fits(t, r.ID, c.most) {
					t.Errorf("not %d cores can be used", c.most)
				}
				o.lends(t, models.Terms{})
			})
		}
	})
}

// fits reports whether so many GPU cores of a reservation can be used now.
func (o *world) fits(t *testing.T, reservation, cores int64) bool {
	t.Helper()
	_, decide, err := o.Pool.Reserved(o.Store.Read(o.Ctx), models.Reservation{ID: reservation}, models.Demand{})
	if err != nil {
		t.Fatal(err)
	}
	return decide(models.Demand{GPUs: 1, Cores: cores, GPUMemoryMiB: 1000}).Outcome == models.OutcomeGranted
}

// What an owner lends to another project now is not kept for a reservation, and whose reservation that is, is not to
// blame for not using it.
func TestTermsThatExcludeAReservation(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		other, _ := o.team(t, "speech")
		r := o.reserve(t, o.ask(60))
		whole := models.Demand{GPUs: 1, Cores: 100, GPUMemoryMiB: 1000}
		o.WantClaim(t, other, whole, models.OutcomeDelayed)
		o.lends(t, models.Terms{Projects: []int64{other.ProjectID}})
		o.WantClaim(t, other, whole, models.OutcomeGranted)
		o.pass(t, time.Hour)
		if got := o.look(t, r.ID); got.State != models.ReservationDone || o.missed(t) != 0 {
			t.Errorf("it is %s, and %d count as not used", got.State, o.missed(t))
		}
	})
}

// What still runs in a reservation that the terms do not admit any more takes its GPU until the reservation ends:
// others reserve after it, and what is kept for them is not thought to be used by it.
func TestUseOfAReservationThatTermsExclude(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		other, actor := o.team(t, "speech")
		r := o.reserve(t, o.ask(50))
		if _, ok := o.use(t, o.member, r.ID, models.Demand{GPUs: 1, Cores: 50, GPUMemoryMiB: 1000}); !ok {
			t.Fatal("it cannot be used")
		}
		if _, err := o.Providers.SetSharing(o.Ctx, o.Root, r.Grants[0].DeviceID, providers.DeviceInput{Sharing: models.SharingTimeSlicing, Mixed: true}); err != nil {
			t.Fatal(err)
		}
		o.lends(t, models.Terms{Projects: []int64{other.ProjectID}})
		in := o.ask(50)
		in.ProjectID, in.From = other.ProjectID, o.hour(2)
		if _, err := o.Reserve(o.Ctx, o.actorAt(actor), in); err != nil {
			t.Fatal(err)
		}
		o.WantClaim(t, other, models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 1000}, models.OutcomeDelayed)
		in.Cores, in.From = 60, nil
		now, err := o.Reserve(o.Ctx, o.actorAt(actor), in)
		if err == nil {
			t.Errorf("60 cores beside 50 that are in use: %+v, %v", now, err)
		}
		in.AcceptLater = true
		later, err := o.Reserve(o.Ctx, o.actorAt(actor), in)
		if err != nil || later.StartsAt.Before(r.EndsAt) {
			t.Errorf("after them, from %v: %+v, %v", r.EndsAt, later, err)
		}
	})
}

// Those who have reserved a machine that does not lend any more are told: at once, or when their reservations begin.
// Those of a machine that was removed are canceled.
func TestReservedMachineGoesAway(t *testing.T) {
	for name, c := range map[string]struct {
		away         func(o *world) error
		before, then int // how often they are told: before the reservation begins, and when it begins
		state        models.ReservationState
	}{
		"drained": {func(o *world) error { return pooltest.Error(o.Providers.Drain(o.Ctx, o.Root, 1, 0)) }, 1, 1, models.ReservationActive},
		"recalled": {func(o *world) error {
			return pooltest.Error(o.Providers.Recall(o.Ctx, o.Root, 1, providers.RecallInput{}))
		},
			1, 1, models.ReservationActive},
		"lost": {func(o *world) error {
			o.Clock.Advance(30 * time.Second)
			return o.Providers.Sweep(o.Ctx)
		}, 0, 1, models.ReservationActive},
		"removed": {func(o *world) error {
			return o.Store.InTx(o.Ctx, func(q *store.Queries) error {
				p, err := q.Provider(1)
				p.State = models.ProviderOffline
				return errors.Join(err, q.UpdateProvider(&p))
			})
		}, 0, 0, models.ReservationCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, 1, func(t *testing.T, o *world) {
				in := o.ask(60)
				in.From = o.hour(1)
				r := o.reserve(t, in)
				for range 2 { // the second time it changes nothing
					pooltest.NoError(t, c.away(o))
				}
				if told := o.atRisk(t); told != c.before {
					t.Errorf("they were told %d times; want %d", told, c.before)
				}
				o.pass(t, time.Hour)
				if got := o.look(t, r.ID); got.State != c.state || o.atRisk(t)-c.before != c.then || o.missed(t) != 0 {
					t.Errorf("it is %s, they were told %d times, and %d count as not used", got.State, o.atRisk(t), o.missed(t))
				}
			})
		})
	}
}

// The user of a reservation that began while its GPU could not be used is told when it can, once.
func TestReservationThatCanBeUsedAfterAll(t *testing.T) {
	for name, c := range map[string]struct {
		away, back func(t *testing.T, o *world)
	}{
		"drained": {func(t *testing.T, o *world) {
			pooltest.NoError(t, pooltest.Error(o.Providers.Drain(o.Ctx, o.Root, 1, 0)))
		},
			func(t *testing.T, o *world) {
				pooltest.NoError(t, pooltest.Error(o.Providers.Resume(o.Ctx, o.Root, 1, o.Provider(t).Version)))
			}},
		"without its GPU": {func(t *testing.T, o *world) { o.report(t, 0) }, func(t *testing.T, o *world) { o.report(t, 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, 1, func(t *testing.T, o *world) {
				in := o.ask(60)
				in.From = o.hour(1)
				r := o.reserve(t, in)
				c.away(t, o)
				told := func(want int) {
					t.Helper()
					if n := o.told(t, models.NotificationReservationActive); n != want {
						t.Errorf("they were told %d times that it can be used; want %d", n, want)
					}
				}
				o.pass(t, time.Hour+5*time.Minute)
				told(0)
				for range 2 {
					c.back(t, o)
					o.pass(t, 2*time.Minute)
					told(1)
					if got := o.look(t, r.ID); !got.ExpiresAt.After(o.Store.Now().Add(12 * time.Minute)) {
						t.Errorf("it expires at %v, now %v", got.ExpiresAt, o.Store.Now())
					}
					c.away(t, o)
					o.pass(t, 2*time.Minute)
				}
				told(1)
			})
		})
	}
}

// Those whose reservation of a machine has begun are told that it is lost.
func TestReservedMachineIsLost(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		o.reserve(t, o.ask(60))
		o.Clock.Advance(30 * time.Second)
		pooltest.NoError(t, o.Providers.Sweep(o.Ctx))
		if told := o.atRisk(t); told != 1 {
			t.Errorf("they were told %d times", told)
		}
	})
}

// The user of a reservation is told when it has ended otherwise than by themselves, and ten minutes before if it is in
// use, once of each end.
func TestEndOfAReservationIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		use           bool
		by            func(o *world) policies.Actor // who cancels it; nil: nobody
		ending, ended int
	}{
		"in use":               {true, nil, 2, 1},
		"unused":               {false, nil, 0, 0},
		"canceled by a user":   {true, func(o *world) policies.Actor { return o.actor }, 1, 0},
		"canceled by somebody": {true, func(o *world) policies.Actor { return o.Root }, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, 1, func(t *testing.T, o *world) {
				r := o.reserve(t, o.ask(60))
				if c.use {
					if _, ok := o.use(t, o.member, r.ID, models.Demand{GPUs: 1, Cores: 60, GPUMemoryMiB: 1000}); !ok {
						t.Fatal("it cannot be used")
					}
				}
				o.pass(t, 49*time.Minute)
				if n := o.told(t, models.NotificationReservationEnding); n != 0 {
					t.Errorf("they were told %d times that it ends", n)
				}
				o.pass(t, 5*time.Minute)
				if c.by != nil {
					pooltest.NoError(t, o.Cancel(o.Ctx, o.actorAt(c.by(o)), r.ID))
				} else if c.use {
					pooltest.NoError(t, o.change(r.ID, nil, o.hour(1)))
				}
				o.pass(t, 2*time.Hour)
				if ending, ended := o.told(t, models.NotificationReservationEnding), o.told(t, models.NotificationReservationEnded); ending != c.ending || ended != c.ended {
					t.Errorf("they were told %d times that it ends, and %d times that it has ended", ending, ended)
				}
			})
		})
	}
}
