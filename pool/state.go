package pool

import (
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
)

// state is what the scheduler decides over, at one moment: the machines and the
// queue. It is not changed.
type state struct {
	snapshot
	queued      []store.QueuedView
	withinQuota map[int64]bool // claims that wait for the pool alone, if for long
	involved    map[int64]bool // in display: the owners of machines and the users of shares
}

// within is the state for the decision on what is new and has a time limit: it leaves what is reserved before it ends.
func (s state) within(limit time.Duration) state {
	end, changed := s.endsBy(limit), map[int64]*machine{}
	if end.Equal(forever) {
		return s
	}
	for _, m := range s.machines {
		if slices.ContainsFunc(m.reserved, func(g models.ReservedView) bool { return g.EndsAt.After(s.now) }) {
			another := *m
			another.nodes = m.nodesAt(s.now, end, s.reachable)
			changed[m.ID] = &another
		}
	}
	if len(changed) > 0 {
		s.snapshot = s.with(changed)
	}
	s.until = &end
	return s
}

// startAndStop is how much longer than its time limit a run has its share at most if the share is needed for a
// reservation: it takes time to start, and to stop.
const startAndStop = 10 * time.Minute

// endsBy is when what is new and has a time limit ends at the latest; without one, never.
func (s snapshot) endsBy(limit time.Duration) time.Time {
	if limit <= 0 {
		return forever
	}
	return s.now.Add(limit + startAndStop)
}
