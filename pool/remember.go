package pool

import "weir/models"

// remembered is a state with the version of the pool at which it was read.
type remembered struct {
	version int64
	state   state
}

// load reads the state, or remembers it: as long as the pool's version is the
// same, nothing of it has changed but the time. A transaction that has changed
// the pool itself reads, and what it reads is not remembered.
func (p *Pool) load(q *models.Queries) (s state, err error) {
	if q.PoolChanges() > 0 {
		return p.read(q)
	}
	version, err := q.PoolVersion()
	if err != nil {
		return s, err
	}
	if known := p.known.Load(); known != nil && known.version == version {
		s = known.state
		s.now, s.home, s.reach = q.Now(), p.home.Load(), p.reach
		return s, nil
	}
	if s, err = p.read(q); err != nil {
		return s, err
	}
	again, err := q.PoolVersion()
	if err == nil && again == version { // nobody has changed it in between
		s = s.draw()
		p.known.Store(&remembered{version, s})
	}
	return s, err
}

// follow lets what is remembered go on, once the transaction q is committed:
// when it has made this many changes of the pool and no others, and nobody's
// came in between, the state is the one before it with change, which may also
// not know.
func (p *Pool) follow(q *models.Queries, changes int, change func(state) (s state, known bool)) {
	q.AfterCommit(func() {
		known := p.known.Load()
		if known != nil && q.PoolChanges() == changes && known.version == q.NewPoolVersion()-1 {
			if s, ok := change(known.state); ok {
				p.known.CompareAndSwap(known, &remembered{known.version + 1, s})
			}
		}
	})
}
