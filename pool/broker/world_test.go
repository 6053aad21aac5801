package broker_test

import (
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/broker"
	"weir/pool/pooltest"
)

// world is the common one with a broker, and a member who may use anything.
type world struct {
	*pooltest.World
	*broker.Service
	member models.Member
	actor  policies.Actor
}

func newWorld(t *testing.T, w *pooltest.World, gpus int) *world {
	t.Helper()
	w.Enlist(t, pooltest.Machine(gpus))
	o := &world{World: w, Service: broker.New(w.Store, w.Access, w.Pool, broker.DefaultRules)}
	o.member, o.actor = o.team(t, "vision")
	pooltest.NoError(t, o.Advance(o.Ctx))
	return o
}

func each(t *testing.T, gpus int, test func(t *testing.T, o *world)) {
	pooltest.Each(t, func(t *testing.T, w *pooltest.World) { test(t, newWorld(t, w, gpus)) })
}

// team adds a project with one member, who may use anything.
func (o *world) team(t *testing.T, name string) (models.Member, policies.Actor) {
	t.Helper()
	m := o.NewTeam(t, name)
	u, err := o.Store.Read(o.Ctx).User(m.UserID)
	if err != nil {
		t.Fatal(err)
	}
	return m, o.Actor(t, u)
}

// actorAt is an actor who asks now.
func (o *world) actorAt(a policies.Actor) policies.Actor {
	a.At = o.Store.Now()
	return a
}

func (o *world) hour(n int) *time.Time { return new(o.Store.Now().Add(time.Duration(n) * time.Hour)) }

// ask is a request for a number of cores of one GPU, for an hour.
func (o *world) ask(cores int64) broker.ReservationInput {
	return broker.ReservationInput{ProjectID: o.member.ProjectID, GPUs: 1, Cores: cores, DurationMinutes: 60}
}

// reserve reserves what must be granted.
func (o *world) reserve(t *testing.T, in broker.ReservationInput) broker.View {
	t.Helper()
	r, err := o.Reserve(o.Ctx, o.actorAt(o.actor), in)
	if err != nil {
		t.Fatal(err)
	}
	return o.look(t, r.ID)
}

func (o *world) look(t *testing.T, id int64) broker.View {
	t.Helper()
	v, err := o.View(o.Ctx, o.actorAt(o.actor), id)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// pass lets time pass.
func (o *world) pass(t *testing.T, d time.Duration) {
	t.Helper()
	step := time.Minute
	if d > 6*time.Hour { // the portal was away
		step = d
	}
	for ; d > 0; d -= step {
		o.Clock.Advance(min(d, step))
		if err := o.Advance(o.Ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// use launches a workspace in a reservation; none if it does not fit.
func (o *world) use(t *testing.T, m models.Member, reservation int64, d models.Demand) (w models.Workspace, ok bool) {
	t.Helper()
	w = o.NewWorkspace(t, m, d)
	storetest.InTx(t, o.Store, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		_, decide, err := o.Pool.Reserved(q, models.Reservation{ID: reservation}, d)
		if err != nil {
			return err
		}
		decision := decide(d)
		if ok = decision.Outcome == models.OutcomeGranted; !ok {
			return nil
		}
		if err := o.Pool.Take(q, w.Holder(), decision); err != nil {
			return err
		}
		return q.UseReservation(reservation, q.Now())
	})
	return w, ok
}

// checkFuture holds rules 3 and 4 at every instant from now on: workspaces keep their
// shares forever, runs until their time limits end them before a reservation begins, those in a
// reservation until it ends, and reservations what they have not used.
func (o *world) checkFuture(t pooltest.Reporter) {
	t.Helper()
	o.CheckDevices(t)
	q, now := o.Store.Read(o.Ctx), o.Store.Now()
	shares, err1 := q.OpenSharesAmong(store.AllMachines)
	grants, err2 := q.ReservedAmong(store.AllMachines)
	devices, err3 := q.DevicesAt(store.AllMachines)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatalf("%v, %v, %v", err1, err2, err3)
	}
	instants := []time.Time{now}
	ends := map[int64]time.Time{}
	for _, g := range grants {
		ends[g.ID] = g.EndsAt
		if g.StartsAt.After(now) {
			instants = append(instants, g.StartsAt)
		}
	}
	for _, d := range devices {
		for _, at := range instants {
			var cores, memory int64
			holders := 0
			var projects []int64
			add := func(c, m, project int64) {
				cores, memory, holders = cores+c, memory+m, holders+1
				if !slices.Contains(projects, project) {
					projects = append(projects, project)
				}
			}
			for _, s := range shares {
				ended := s.EndsBy != nil && at.After(now) && !s.EndsBy.After(at)
				if s.DeviceID == d.ID && s.GrantID == nil && !ended {
					add(s.Cores, s.MemoryMiB, s.ProjectID)
				}
			}
			for _, g := range grants {
				if g.DeviceID == d.ID && !g.StartsAt.After(at) && g.EndsAt.After(at) {
					add(g.Cores, g.MemoryMiB, g.ProjectID)
				}
			}
			if cores > 100 || memory > d.MemoryMiB || len(projects) > 1 && !d.Mixed || d.Exclusive() && holders > 1 {
				t.Errorf("%s has %d cores, %d MiB, %d holders and projects %v at %v, now %v", d.UUID, cores, memory, holders, projects, at, now)
			}
		}
	}
	for _, s := range shares {
		if s.GrantID == nil {
			continue
		}
		i := slices.IndexFunc(grants, func(g models.ReservedView) bool { return g.ID == *s.GrantID })
		if i >= 0 && (grants[i].DeviceID != s.DeviceID || s.Cores > grants[i].Cores || s.MemoryMiB > grants[i].MemoryMiB) {
			t.Errorf("a share of %d cores in %+v", s.Cores, grants[i])
		}
	}
}
