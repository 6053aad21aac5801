package pool

import "weir/models/store"

// cached is a snapshot with the version of the pool at which it was read.
type cached struct {
	version  int64
	snapshot snapshot
}

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
