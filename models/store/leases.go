package store

import (
	"sync"
	"time"
)

// Leader is the leader election of one task among several servers.
type Leader struct {
	Name      string `gorm:"primaryKey"`
	Holder    string
	Epoch     int64 // grows with every change of the holder
	ExpiresAt time.Time
}

// leases are those of leaders, as they were seen, by the epoch and the end.
type leases struct {
	mu   sync.Mutex
	seen sightings[[2]int64]
}

// unchanged is for how long a lease has not been renewed, whatever the clock of its holder says.
func (s *leases) unchanged(l Leader, now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = sightings[[2]int64]{}
	}
	return s.seen.unchanged(l.Name, [2]int64{l.Epoch, l.ExpiresAt.UnixNano()}, now)
}
