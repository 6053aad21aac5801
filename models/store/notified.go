package store

import (
	"maps"
	"sync"

	"weir/models"
)

// notified is what a transaction notified of, and whom.
type notified struct {
	kind  string
	text  models.Text
	link  string
	users []int64
}

// notifiedCounts counts what committed transactions notified of, by kind.
type notifiedCounts struct {
	mu     sync.Mutex
	byKind map[string]int64
}

func (c *notifiedCounts) add(list []notified) {
	if len(list) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKind == nil {
		c.byKind = map[string]int64{}
	}
	for _, n := range list {
		c.byKind[n.kind]++
	}
}

// CountNotified returns of how many events this process has notified, by the kind of the
// notification: each counts once, whoever was notified.
func (s *Store) CountNotified() map[string]int64 {
	s.notified.mu.Lock()
	defer s.notified.mu.Unlock()
	return maps.Clone(s.notified.byKind)
}
