package pool

import (
	"context"
	"slices"
	"time"

	"weir/models/store"
)

// load is the snapshot as of now. As long as the pool's version is the same,
// it is the cached one; otherwise the machines that have changed since are
// read again. A transaction that has changed the pool itself reads all, and
// what it reads is not cached.
func (s *Scheduler) load(q *store.Queries) (snap snapshot, err error) {
	if q.PoolChanges() > 0 {
		return readSnapshot(q, s.providers.Reachable)
	}
	version, err := q.PoolVersion()
	if err != nil {
		return snap, err
	}
	c := s.cached.Load()
	if c != nil && c.version == version {
		if snap = c.snapshot.at(q.Now()); !snap.checked.Equal(c.snapshot.checked) {
			s.cached.CompareAndSwap(c, &cached{version, snap})
		}
		return snap, nil
	}
	// What changes while it is read has a later version, and is read again
	// when that is seen.
	which := store.AllMachines
	snap = snapshot{reachable: s.providers.Reachable}
	if c != nil {
		if which, err = q.MachinesChanged(c.version, version); err != nil {
			return snap, err
		}
		snap = c.snapshot.at(q.Now())
	}
	if snap, err = snap.reread(q, which); err == nil {
		s.cached.CompareAndSwap(c, &cached{version, snap})
	}
	return snap, err
}

// read reads the state.
func (s *Scheduler) read(q *store.Queries) (st state, err error) {
	if st.snapshot, err = s.load(q); err != nil {
		return st, err
	}
	if st.queued, err = q.Queued(); err == nil {
		st.withinQuota, err = withinQuota(q, slices.DeleteFunc(slices.Clone(st.queued),
			func(v store.QueuedView) bool { return !st.reserves(v.Claim) }))
	}
	return st, err
}

// displayAge bounds the age of what views show, for changes without a topic.
const displayAge = time.Second

// display returns the state for views. It is read once for all readers until it changes.
// Decisions read their own.
func (s *Scheduler) display(ctx context.Context) (state, error) {
	st, err := s.displayed.Get(ctx, struct{}{}, func(ctx context.Context) (state, store.Validity, error) {
		st, err := s.read(s.store.Read(ctx))
		st.involved = st.owners()
		return st, store.Validity{Topics: []string{"pool", "projects"}, MaxAge: displayAge}, err
	})
	st.snapshot = st.at(s.store.Now())
	return st, err
}

// owners are the owners of machines and the users of shares.
func (s snapshot) owners() map[int64]bool {
	users := map[int64]bool{}
	for _, m := range s.machines {
		users[m.Owner()] = true
		for _, share := range m.shares {
			users[share.UserID] = true
		}
	}
	return users
}
