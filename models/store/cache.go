package store

import (
	"context"
	"sync"
	"time"
)

// MaxCacheAge bounds the age of an entry, for changes that were made to the database
// by hand.
const MaxCacheAge = time.Minute

// MaxCached is the usual size of a cache of small values.
const MaxCached = 1 << 14

// Cache caches what was read from the database until something on which it depends
// changes. Of concurrent readers of one key, one reads.
//
// On a server with a valid lease nothing cached outlives its revocation: the entry
// is invalid before the revoking call returns, on whichever server that was made.
// This needs values that are made of nothing but the key and what is read from the
// database for it. Without a lease nothing is cached.
type Cache[K comparable, V any] struct {
	store  *Store
	size   int            // weight of all entries at most; a full cache is cleared
	weight func(K, V) int // of an entry

	mu      sync.Mutex
	total   int // weight of entries
	entries map[K]entry[V]
	loads   map[K]*load[V]
}

type entry[V any] struct {
	Validity
	value  V
	asOf   int64         // the number of the last change before it was read
	readAt time.Duration // of Store.Elapsed
}

// load is one read in progress.
type load[V any] struct {
	asOf      int64 // as in entry
	done      chan struct{}
	value     V
	err       error
	abandoned bool // there is no result: its caller gave up
}

// NewCache returns an empty cache of what is in s, for so many entries.
func NewCache[K comparable, V any](s *Store, size int) *Cache[K, V] {
	return NewWeightedCache(s, size, func(K, V) int { return 1 })
}

// NewWeightedCache returns an empty cache for entries that weigh so much together.
func NewWeightedCache[K comparable, V any](s *Store, size int, weight func(K, V) int) *Cache[K, V] {
	return &Cache[K, V]{store: s, size: size, weight: weight, entries: map[K]entry[V]{}, loads: map[K]*load[V]{}}
}

// Get returns the value of a key, from the cache or else from read. Errors are not
// cached. In a snapshot the cache is the snapshot's own.
func (c *Cache[K, V]) Get(ctx context.Context, key K, read func(context.Context) (V, Validity, error)) (V, error) {
	if in := c.store.snapshot(ctx); in != nil {
		type place struct {
			cache *Cache[K, V]
			key   K
		}
		return once(in, place{c, key}, func() (V, error) {
			value, _, err := read(ctx)
			return value, err
		})
	}
	for {
		value, l, own := c.find(key)
		switch {
		case l == nil:
			return value, nil
		case own:
			c.read(ctx, key, l, read)
			return l.value, l.err
		}
		select {
		case <-ctx.Done():
			return value, ctx.Err()
		case <-l.done:
			if !l.abandoned {
				return l.value, l.err
			}
		}
	}
}

// find returns a cached value, or else a read in progress, which is the caller's own
// unless there is one that began after the last change.
func (c *Cache[K, V]) find(key K) (value V, l *load[V], own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok && c.usable(e) {
		return e.value, nil, false
	}
	// Check the lease before reading the number: a revocation that was missed while the
	// lease was invalid counts as a change.
	valid := c.store.mayUseCaches()
	change := c.store.changes.number()
	if l := c.loads[key]; l != nil && l.asOf == change && valid {
		return value, l, false
	}
	l = &load[V]{asOf: change, done: make(chan struct{}), abandoned: true}
	c.loads[key] = l
	return value, l, true
}

// usable reports whether an entry that was found may be used. The lease is checked
// after the lookup, so every revocation that has returned is known.
func (c *Cache[K, V]) usable(e entry[V]) bool {
	s, maxAge := c.store, MaxCacheAge
	if e.MaxAge > 0 {
		maxAge = min(maxAge, e.MaxAge)
	}
	return s.mayUseCaches() && (len(e.Topics) == 0 || s.receivesTopics()) && !s.changes.changedSince(e.asOf, e.Validity) &&
		s.Elapsed()-e.readAt < maxAge && (e.Until.IsZero() || s.Now().Before(e.Until))
}

func (c *Cache[K, V]) read(ctx context.Context, key K, l *load[V], read func(context.Context) (V, Validity, error)) {
	readAt, valid := c.store.Elapsed(), Validity{}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.loads[key] == l {
			delete(c.loads, key)
		}
		if e := (entry[V]{valid, l.value, l.asOf, readAt}); !l.abandoned && l.err == nil && c.usable(e) && c.entries[key].asOf <= e.asOf {
			c.put(key, e)
		}
		close(l.done)
	}()
	l.value, valid, l.err = read(ctx)
	l.abandoned = l.err != nil && ctx.Err() != nil
}

// put stores an entry, alone if it does not fit beside the others.
func (c *Cache[K, V]) put(key K, e entry[V]) {
	weight := c.weight(key, e.value)
	if weight > c.size {
		return
	}
	if old, ok := c.entries[key]; ok {
		c.total -= c.weight(key, old.value)
	}
	if c.total += weight; c.total > c.size {
		clear(c.entries)
		c.total = weight
	}
	c.entries[key] = e
}
