package pool

import "weir/models"

// cached is a snapshot with the version of the pool at which it was read.
type cached struct {
	version  int64
	snapshot snapshot
}

// load reads the snapshot, or takes the cached one: as long as the pool's
// version is the same, nothing of it has changed but the time. A transaction
// that has changed the pool itself reads, and what it reads is not cached.
func (s *Scheduler) load(q *models.Queries) (snap snapshot, err error) {
	if q.PoolChanges() > 0 {
		return s.read(q)
	}
	version, err := q.PoolVersion()
	if err != nil {
		return snap, err
	}
	if c := s.cached.Load(); c != nil && c.version == version {
		snap = c.snapshot
		snap.now = q.Now()
		return snap, nil
	}
	if snap, err = s.read(q); err != nil {
		return snap, err
	}
	again, err := q.PoolVersion()
	if err == nil && again == version { // nobody has changed it in between
		snap = snap.withNodes()
		s.cached.Store(&cached{version, snap})
	}
	return snap, err
}

// advance lets the cache go on, once the transaction q is committed: when it
// has made this many changes of the pool and no others, and nobody's came in
// between, the snapshot is the one before it with change, which may also not
// know.
func (s *Scheduler) advance(q *models.Queries, changes int, change func(snapshot) (snap snapshot, known bool)) {
	q.AfterCommit(func() {
		c := s.cached.Load()
		if c != nil && q.PoolChanges() == changes && c.version == q.NewPoolVersion()-1 {
			if snap, known := change(c.snapshot); known {
				s.cached.CompareAndSwap(c, &cached{c.version + 1, snap})
			}
		}
	})
}
