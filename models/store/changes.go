package store

import (
	"slices"
	"sync"
)

const (
	// AllTopics stands for all topics: changes of other servers may have been
	// missed.
	AllTopics = "*"
	// Reconnected comes beside AllTopics after the connection to the database was lost: the
	// database may be another one now, with other changes by the same numbers.
	Reconnected = "reconnected"
)

// changes numbers what has changed, as far as this server knows.
type changes struct {
	mu           sync.RWMutex
	last         int64            // the number of the last change
	keys, topics map[string]int64 // the number of the last change of each
	allKeys      int64            // all changed with this number or before
	allTopics    int64
}

// maxNames is the number of keys and of topics that changes distinguish.
const maxNames = 1 << 16

func (c *changes) number() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.last
}

// changedSince reports whether something on which v depends has changed after change.
func (c *changes) changedSince(change int64, v Validity) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	later := func(numbers map[string]int64) func(string) bool {
		return func(name string) bool { return numbers[name] > change }
	}
	return c.allKeys > change || len(v.Topics) > 0 && c.allTopics > change ||
		slices.ContainsFunc(v.Keys, later(c.keys)) || slices.ContainsFunc(v.Topics, later(c.topics))
}

func (c *changes) addKeys(keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(&c.keys, &c.allKeys, keys)
}

func (c *changes) addTopics(topics []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(&c.topics, &c.allTopics, topics)
	if slices.Contains(topics, AllTopics) {
		c.allTopics = c.last
	}
}

func (c *changes) add(numbers *map[string]int64, all *int64, names []string) {
	c.last++
	if *numbers == nil || len(*numbers) > maxNames {
		*numbers, *all = map[string]int64{}, c.last
	}
	for _, name := range names {
		(*numbers)[name] = c.last
	}
}

// addAll is a change of everything: some changes may have been missed.
func (c *changes) addAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.allKeys, c.allTopics = c.last, c.last
	clear(c.keys)
	clear(c.topics)
}
