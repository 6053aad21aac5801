package store

import (
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
