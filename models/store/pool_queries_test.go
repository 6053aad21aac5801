package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// A page has the requested number of rows, up to the maximum.
func TestPageSize(t *testing.T) {
	s := storetest.Open(t, "sqlite")
	storetest.InTx(t, s, func(q *store.Queries) error {
		for i := range store.PageSize + 1 {
			if err := q.CreateUser(&models.User{Email: fmt.Sprintf("u%d@example.org", i), Name: "u", Version: 1, CreatedAt: q.Now()}); err != nil {
				return err
			}
		}
		return nil
	})
	for limit, want := range map[int]int{0: 50, 7: 7, store.PageSize: store.PageSize, 1000: store.PageSize} {
		if users, err := s.Read(t.Context()).Users("", store.Page{Limit: limit}); err != nil || len(users) != want {
			t.Errorf("limit %d: %d users, %v; want %d", limit, len(users), err, want)
		}
	}
}

// Decisions of other projects do not fill the list of a small project.
func TestDecisionsInScope(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		small, busy := addWorld(t, s, "small"), addWorld(t, s, "busy")
		storetest.InTx(t, s, func(q *store.Queries) error {
			for i := range 40 {
				d := models.DecisionRecord{At: q.Now(), ProjectID: busy.project.ID, UserID: busy.user.ID, Outcome: models.OutcomeGranted, GPUs: 1, Cores: int64(i)}
				if i < 3 {
					d.ProjectID, d.UserID = small.project.ID, small.user.ID
				}
				if err := q.CreateDecisionRecord(&d); err != nil {
					return err
				}
			}
			return nil
		})
		for name, c := range map[string]struct {
			scope store.Scope
			want  []int64 // by their cores
		}{"its own": {small.scope(), []int64{2, 1, 0}}, "the newest": {busy.scope(), []int64{39, 38, 37, 36, 35}},
			"all": {store.AllProjects, []int64{39, 38, 37, 36, 35}}, "none": {store.Scope{}, nil}} {
			list, err := s.Read(t.Context()).DecisionsIn(c.scope, 5)
			var got []int64
			for _, d := range list {
				got = append(got, d.Cores)
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
			}
		}
	})
}

// share creates a share of the workspace with an announced end.
func (w *world) share(t *testing.T, device int64, ends *time.Time) models.Share {
	t.Helper()
	share := models.Share{DeviceID: device, HolderID: w.workspace.HolderID, ProjectID: w.project.ID, UserID: w.user.ID, Cores: 10, MemoryMiB: 10,
		Enforcement: models.EnforcedAdvisory, From: w.store.Now(), EndsAt: ends}
	storetest.InTx(t, w.store, func(q *store.Queries) error { return q.CreateShare(&share) })
	return share
}

func TestSharesEndingOtherwise(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.NewClock(s)
		w, device := newWorld(t, s), addDevice(t, s)
		d, err := s.Read(t.Context()).Device(device)
		if err != nil {
			t.Fatal(err)
		}
		soon, late := s.Now().Add(time.Hour), s.Now().Add(2*time.Hour)
		endless, ended, ending := w.share(t, device, nil).ID, w.share(t, device, ago(s, time.Minute)).ID, w.share(t, device, &soon).ID
		for _, c := range []struct {
			name string
			at   *time.Time
			want []int64
		}{{"none", nil, []int64{ending}}, {"the same", &soon, []int64{endless}}, {"later", &late, []int64{endless, ending}}} {
			shares, err := s.Read(t.Context()).SharesWithOtherEnd(d.ProviderID, c.at)
			var got []int64
			for _, share := range shares {
				got = append(got, share.ID)
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, %v; want %v (not %d, whose end has come)", c.name, got, err, c.want, ended)
			}
		}
	})
}

// Processes on a GPU are deleted with the share, but not on other GPUs.
func TestEndedSharesLeaveNoProcesses(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w, parent := newWorld(t, s), addDevice(t, s)
		var instance, other models.Device
		storetest.InTx(t, s, func(q *store.Queries) error {
			d, err := q.Device(parent)
			if err != nil {
				return err
			}
			instance, other = d, d
			instance.ID, instance.UUID, instance.ParentID = 0, "MIG-1", &parent
			other.ID, other.UUID = 0, "GPU-other"
			for _, d := range []*models.Device{&instance, &other} {
				if err := q.CreateDevice(d); err != nil {
					return err
				}
			}
			var states []models.DeviceState
			for _, id := range []int64{parent, instance.ID, other.ID} {
				states = append(states, models.DeviceState{DeviceID: id, At: q.Now(), Utilisation: 5, Processes: []models.GPUProcess{{PID: 7, Name: "train.py"}}})
			}
			return q.SaveStates(states)
		})
		w.share(t, instance.ID, nil)
		storetest.InTx(t, s, func(q *store.Queries) error { return q.EndShares(w.workspace.HolderID, q.Now()) })
		states, err := s.Read(t.Context()).DeviceStates()
		if err != nil || len(states) != 3 || len(states[parent].Processes)+len(states[instance.ID].Processes) > 0 || len(states[other.ID].Processes) != 1 ||
			states[parent].Utilisation != 5 {
			t.Errorf("%+v, %v", states, err)
		}
	})
}

// A share does not end before it began, although the clock was set back, or is that of another server.
func TestSharesEndAfterTheirStart(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w, device := newWorld(t, s), addDevice(t, s)
		w.share(t, device, nil)
		storetest.InTx(t, s, func(q *store.Queries) error { return q.EndShares(w.workspace.HolderID, q.Now().Add(-time.Hour)) })
		shares, err := s.Read(t.Context()).ShareHistory(device, 10)
		if err != nil || len(shares) != 1 || shares[0].Until == nil || !shares[0].Until.Equal(shares[0].From) {
			t.Errorf("%+v, %v", shares, err)
		}
	})
}

// A release ends what is open. Shares that have ended keep their end, by which
// use is counted.
func TestSharesEndOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		w, device := newWorld(t, s), addDevice(t, s)
		release := func() (changes int) {
			storetest.InTx(t, s, func(q *store.Queries) error {
				err := q.EndShares(w.workspace.HolderID, q.Now())
				changes = q.PoolChanges()
				return err
			})
			return changes
		}
		w.share(t, device, nil)
		clock.Advance(time.Hour)
		first := s.Now()
		release()
		w.share(t, device, nil)
		clock.Advance(time.Hour)
		release()
		last := s.Now()
		clock.Advance(time.Hour)
		if n := release(); n != 0 {
			t.Errorf("a release of nothing changed the pool %d times", n)
		}
		shares, err := s.Read(t.Context()).ShareHistory(device, 10)
		if err != nil || len(shares) != 2 || !shares[0].Until.Equal(last) || !shares[1].Until.Equal(first) {
			t.Errorf("%+v, %v; want the ends %s and %s", shares, err, last, first)
		}
	})
}

// An absent device is in the pool only as long as something uses it.
func TestAbsentDevicesInUse(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w, unused := newWorld(t, s), addDevice(t, s)
		var present, inUse models.Device
		storetest.InTx(t, s, func(q *store.Queries) error {
			d, err := q.Device(unused)
			if err != nil {
				return err
			}
			present, inUse = d, d
			present.ID, present.UUID, present.Number, present.Present = 0, "GPU-present", 1, true
			inUse.ID, inUse.UUID, inUse.Number = 0, "GPU-used", 2
			return errors.Join(q.CreateDevice(&present), q.CreateDevice(&inUse))
		})
		w.share(t, inUse.ID, nil)
		listed := func() (ids []int64) {
			t.Helper()
			devices, err := s.Read(t.Context()).DevicesAt(store.AllMachines)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range devices {
				ids = append(ids, d.ID)
			}
			return ids
		}
		if got, want := listed(), []int64{present.ID, inUse.ID}; !slices.Equal(got, want) {
			t.Errorf("devices %v, want %v: not %d, which is absent", got, want, unused)
		}
		storetest.InTx(t, s, func(q *store.Queries) error { return q.EndShares(w.workspace.HolderID, q.Now()) })
		if got, want := listed(), []int64{present.ID}; !slices.Equal(got, want) {
			t.Errorf("devices %v, want %v: nothing uses %d any more", got, want, inUse.ID)
		}
	})
}

// Between two versions, only the machines that have changed need to be read
// again; all of them if the later version is not the later one, as after the
// database was restored, or if the changes are not stored any more.
func TestMachinesChanged(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w, device := newWorld(t, s), addDevice(t, s)
		storetest.InTx(t, s, func(q *store.Queries) error {
			return q.CreateProvider(&models.Provider{Name: "other", State: models.ProviderOnline, SeenAt: q.Now(), Version: 1, CreatedAt: q.Now()})
		})
		q := s.Read(t.Context())
		before, err := q.PoolVersion()
		if err != nil {
			t.Fatal(err)
		}
		w.share(t, device, nil)
		for _, c := range []struct {
			name           string
			since, version int64
			want           int // providers
		}{
			{"the same version", before + 1, before + 1, 0},
			{"one share", before, before + 1, 1},
			{"an older version", before + 2, before + 1, 2},
			{"too long ago", before - 5000, before + 1, 2},
		} {
			which, err := q.MachinesChanged(c.since, c.version)
			if err != nil {
				t.Fatal(err)
			}
			if providers, err := q.ProvidersOf(which); err != nil || len(providers) != c.want {
				t.Errorf("%s: %d providers, %v; want %d", c.name, len(providers), err, c.want)
			}
		}
	})
}

// A change of an account or of a project changes the machines with shares of it, by its name, and no others.
func TestMachinesChangedByNames(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w, device := newWorld(t, s), addDevice(t, s)
		other := models.Provider{Name: "other", State: models.ProviderOnline, Version: 1}
		storetest.InTx(t, s, func(q *store.Queries) error {
			other.SeenAt, other.CreatedAt = q.Now(), q.Now()
			return q.CreateProvider(&other)
		})
		w.share(t, device, nil)
		idle := storetest.User(t, s, "idle@example.org", false)
		q := s.Read(t.Context())
		user := func(id int64) func(q *store.Queries) error {
			return func(q *store.Queries) error {
				u, err := q.User(id)
				u.Name = "Another"
				return errors.Join(err, q.UpdateUser(&u))
			}
		}
		for _, c := range []struct {
			name   string
			change func(q *store.Queries) error
			want   int // machines
		}{
			{"a user with a share", user(w.workspace.UserID), 1},
			{"a user without one", user(idle.ID), 0},
			{"a project", func(q *store.Queries) error {
				p, err := q.Project(store.AllProjects, w.workspace.ProjectID)
				p.Name = "another"
				return errors.Join(err, q.UpdateProject(&p))
			}, 1},
		} {
			before, err := q.PoolVersion()
			if err != nil {
				t.Fatal(err)
			}
			storetest.InTx(t, s, c.change)
			version, err1 := q.PoolVersion()
			which, err2 := q.MachinesChanged(before, version)
			changed, err3 := q.ProvidersOf(which)
			if err := errors.Join(err1, err2, err3); err != nil || version == before || len(changed) != c.want {
				t.Errorf("%s: from version %d to %d, machines %+v, %v; want %d", c.name, before, version, changed, err, c.want)
			}
		}
	})
}

// A machine of which only shares have changed is told from one whose devices have, too, before or after, and
// from one that the reader does not have yet.
func TestMachinesWithOtherShares(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w, device := newWorld(t, s), addDevice(t, s)
		q := s.Read(t.Context())
		version := func() int64 {
			v, err := q.PoolVersion()
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		shares := func() { w.share(t, device, nil) }
		settings := func() {
			storetest.InTx(t, s, func(q *store.Queries) error {
				d, err := q.Device(device)
				if err != nil {
					return err
				}
				d.Mixed = !d.Mixed
				return q.UpdateDevice(&d)
			})
		}
		for _, c := range []struct {
			name       string
			changes    []func()
			known      bool
			sharesOnly bool
		}{
			{"shares", []func(){shares, shares}, true, true},
			{"shares of an unknown machine", []func(){shares}, false, false},
			{"settings", []func(){settings}, true, false},
			{"settings and then shares", []func(){settings, shares}, true, false},
			{"shares and then settings", []func(){shares, settings}, true, false},
		} {
			since := version()
			for _, change := range c.changes {
				change()
			}
			which, err := q.MachinesChanged(since, version())
			if err != nil {
				t.Fatal(err)
			}
			changed, sharesOnly := which.Changed(func(int64) bool { return c.known })
			providers, err := q.ProvidersOf(changed)
			devices, err2 := q.DevicesAt(changed)
			if err != nil || err2 != nil || (len(sharesOnly) == 1) != c.sharesOnly || (len(providers) == 1 && len(devices) == 1) == c.sharesOnly {
				t.Errorf("%s: shares of %v, and %d providers with %d devices have changed, %v, %v", c.name, sharesOnly, len(providers), len(devices), err, err2)
			}
		}
	})
}
