package store_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/models/store"
	"weir/models/store/storetest"
)

var errNotCached = errors.New("not cached")

// cache is a cache of texts.
type cache struct {
	*store.Cache[string, string]
	t *testing.T
}

func newCache(t *testing.T, s *store.Store) cache {
	return cache{store.NewCache[string, string](s, 100), t}
}

// put reads a value into the cache.
func (c cache) put(key string, v store.Validity) {
	c.t.Helper()
	got, err := c.Get(c.t.Context(), key, func(context.Context) (string, store.Validity, error) { return key, v, nil })
	if got != key || err != nil {
		c.t.Fatalf("%q, %v", got, err)
	}
}

// has reports whether a key is cached.
func (c cache) has(key string) bool {
	c.t.Helper()
	got, err := c.Get(c.t.Context(), key, func(context.Context) (string, store.Validity, error) { return "", store.Validity{}, errNotCached })
	if err != nil && !errors.Is(err, errNotCached) || err == nil && got != key {
		c.t.Fatalf("%q, %v", got, err)
	}
	return err == nil
}

// onSole runs a test with the cache of a store that has the lease of a sole server.
func onSole(t *testing.T, test func(t *testing.T, s *store.Store, c cache, elapsed *atomic.Int64)) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		elapsed := &atomic.Int64{}
		s.Elapsed = func() time.Duration { return time.Duration(elapsed.Load()) }
		test(t, s, newCache(t, s), elapsed)
	})
}

func TestCacheForgetsWhatChanges(t *testing.T) {
	onSole(t, func(t *testing.T, s *store.Store, c cache, _ *atomic.Int64) {
		storetest.NewClock(s)
		for _, x := range []struct {
			name   string
			change func(*store.Queries) error
			valid  store.Validity
			stays  bool
		}{
			{"its key", func(q *store.Queries) error { q.Revoke("user", 7); return nil }, store.Validity{Keys: []string{"project:1", "user:7"}}, false},
			{"another key", func(q *store.Queries) error { q.Revoke("user", 8); return nil }, store.Validity{Keys: []string{"user:7"}}, true},
			{"its topic", func(q *store.Queries) error { q.Touch("pool"); return nil }, store.Validity{Topics: []string{"pool"}}, false},
			{"another topic", func(q *store.Queries) error { q.Touch("projects"); return nil }, store.Validity{Topics: []string{"pool"}}, true},
			{"all topics", func(q *store.Queries) error { q.Touch(store.AllTopics); return nil }, store.Validity{Topics: []string{"pool"}}, false},
			{"all topics, not its key", func(q *store.Queries) error { q.Touch(store.AllTopics); return nil }, store.Validity{Keys: []string{"user:7"}}, true},
			{"a topic named as its key", func(q *store.Queries) error { q.Touch("user", 7); return nil }, store.Validity{Keys: []string{"user:7"}}, true},
			{"what is undone", func(q *store.Queries) error { q.Revoke("user", 7); return errSecret }, store.Validity{Keys: []string{"user:7"}}, true},
		} {
			c.put(x.name, x.valid)
			if !c.has(x.name) {
				t.Fatalf("%s: not cached", x.name)
			}
			if err := s.InTx(t.Context(), x.change); err != nil && !errors.Is(err, errSecret) {
				t.Fatal(err)
			}
			if c.has(x.name) != x.stays {
				t.Errorf("after a change of %s it is cached: %v", x.name, !x.stays)
			}
		}
	})
}

// A change that is forgotten, because more names have changed than are kept, is not
// taken for none.
func TestCacheAfterManyChanges(t *testing.T) {
	onSole(t, func(t *testing.T, s *store.Store, c cache, _ *atomic.Int64) {
		storetest.NewClock(s)
		storetest.InTx(t, s, func(q *store.Queries) error { q.Touch("projects"); return nil })
		c.put("k", store.Validity{Topics: []string{"pool"}})
		storetest.InTx(t, s, func(q *store.Queries) error {
			q.Touch("pool")
			for i := range int64(1 << 16) {
				q.Touch("project", i)
			}
			return nil
		})
		storetest.InTx(t, s, func(q *store.Queries) error { q.Touch("projects"); return nil })
		if c.has("k") {
			t.Error("cached after its topic has changed")
		}
	})
}

func TestCacheExpires(t *testing.T) {
	onSole(t, func(t *testing.T, s *store.Store, c cache, elapsed *atomic.Int64) {
		measured := s.Elapsed
		clock := storetest.NewClock(s)
		s.Elapsed = measured
		end := s.Now().Add(time.Hour)
		c.put("until", store.Validity{Until: end})
		clock.Advance(time.Hour - time.Microsecond)
		if !c.has("until") {
			t.Error("not cached before its end")
		}
		clock.Advance(time.Microsecond)
		if c.has("until") {
			t.Error("cached at its end")
		}
		c.put("short", store.Validity{MaxAge: time.Second})
		c.put("long", store.Validity{MaxAge: time.Hour})
		elapsed.Add(int64(time.Second))
		if c.has("short") || !c.has("long") {
			t.Error("a value is cached for another time than its own")
		}
		elapsed.Add(int64(store.MaxCacheAge))
		if c.has("long") {
			t.Error("a value is cached for longer than any")
		}
	})
}

// What was read before a change is not cached after it, and nobody who came after the
// change gets it.
func TestCacheDuringAChange(t *testing.T) {
	onSole(t, func(t *testing.T, s *store.Store, c cache, _ *atomic.Int64) {
		begun, changed := make(chan struct{}), make(chan struct{})
		valid := store.Validity{Keys: []string{"user:7"}}
		var early sync.WaitGroup
		early.Go(func() {
			got, err := c.Get(t.Context(), "k", func(context.Context) (string, store.Validity, error) {
				close(begun)
				<-changed
				return "old", valid, nil
			})
			if got != "old" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
		<-begun
		storetest.InTx(t, s, func(q *store.Queries) error { q.Revoke("user", 7); return nil })
		got, err := c.Get(t.Context(), "k", func(context.Context) (string, store.Validity, error) { return "k", valid, nil })
		if got != "k" || err != nil {
			t.Errorf("after the change: %q, %v", got, err)
		}
		close(changed)
		early.Wait()
		if !c.has("k") {
			t.Error("the new value is not cached")
		}
	})
}

// Of many readers of a key one reads, also when the first gives up.
func TestCacheReadsOnce(t *testing.T) {
	onSole(t, func(t *testing.T, s *store.Store, c cache, _ *atomic.Int64) {
		ctx, giveUp := context.WithCancel(t.Context())
		begun := make(chan struct{})
		var first, others sync.WaitGroup
		first.Go(func() {
			_, err := c.Get(ctx, "k", func(ctx context.Context) (string, store.Validity, error) {
				close(begun)
				<-ctx.Done()
				return "", store.Validity{}, ctx.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the first: %v", err)
			}
		})
		<-begun
		var reads atomic.Int64
		for range 50 {
			others.Go(func() {
				got, err := c.Get(t.Context(), "k", func(context.Context) (string, store.Validity, error) {
					reads.Add(1)
					return "k", store.Validity{}, nil
				})
				if got != "k" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		giveUp()
		first.Wait()
		others.Wait()
		if n := reads.Load(); n != 1 {
			t.Errorf("read %d times", n)
		}
	})
}

// A store without a valid lease caches nothing, and what was cached before is not
// used after.
func TestCacheNeedsALease(t *testing.T) {
	p := processes(t, "postgres", 1)[0]
	c := newCache(t, p.Store)
	valid := store.Validity{Keys: []string{"user:7"}}
	if c.put("k", valid); c.has("k") {
		t.Fatal("cached without a lease")
	}
	// Nor is what another reads at the same time, which may be older than a revocation. A
	// reader who has given up gets only what it reads itself.
	gone, giveUp := context.WithCancel(t.Context())
	giveUp()
	_, err := c.Get(t.Context(), "k", func(context.Context) (string, store.Validity, error) {
		own, err := c.Get(gone, "k", func(context.Context) (string, store.Validity, error) { return "own", valid, nil })
		if own != "own" || err != nil {
			t.Errorf("without a lease a reader waits for the other: %q, %v", own, err)
		}
		return "k", valid, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := p.Join(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if c.put("k", valid); !c.has("k") {
		t.Fatal("not cached with a lease")
	}
	if c.put("topic", store.Validity{Topics: []string{"pool"}}); c.has("topic") {
		t.Error("cached although the changes of other servers do not arrive")
	}
	p.elapsed.Add(int64(expire))
	if c.has("k") {
		t.Error("used after the lease has expired")
	}
	db, err := p.SQL()
	if err == nil {
		_, err = db.Exec("DELETE FROM servers") // others evict it, and no longer wait for it
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); lease.Run(ctx, func(err error) { t.Log(err) }) }()
	eventually(t, "a new lease", lease.Holds)
	if c.has("k") {
		t.Error("used although revocations may have been missed")
	}
	cancel()
	<-done
}

// When a revoking call returns, no server has the value cached.
func TestCachesOfTwoServers(t *testing.T) {
	both := processes(t, "postgres", 2)
	here, there := both[0], both[1]
	defer here.serve(t, false, true)()
	defer there.serve(t, false, true)()
	c := newCache(t, there.Store)
	for range 100 {
		if c.put("k", store.Validity{Keys: []string{"user:7"}}); !c.has("k") {
			t.Fatal("not cached")
		}
		if err := here.InRevokingTx(t.Context(), func(q *store.Queries) error { q.Revoke("user", 7); return nil }); err != nil {
			t.Fatal(err)
		}
		if c.has("k") {
			t.Fatal("cached on the other server")
		}
	}
}
