package store_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"weir/migrations"
	"weir/models/store"
	"weir/models/store/storetest"
)

// A server with an exclusive claim on the data leads at once, whatever lease is still
// valid; the former leader is fenced, and another server does not wait for this one.
func TestLeadAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.NewClock(s)
		of := func(lead func() (int64, error)) int64 {
			t.Helper()
			epoch, err := lead()
			if err != nil {
				t.Fatal(err)
			}
			return epoch
		}
		cluster := func() (int64, error) { return s.Lead(t.Context(), "controller", "cluster", time.Hour) }
		alone := func() (int64, error) { return s.LeadAlone(t.Context(), "controller", "alone") }
		first := of(cluster)
		second := of(alone)
		if second <= first {
			t.Errorf("it leads as %d after %d", second, first)
		}
		ctx, end := store.AsLeader(t.Context(), "controller", first)
		defer end()
		if err := s.InTx(ctx, func(*store.Queries) error { return nil }); !errors.Is(err, store.ErrFenced) {
			t.Errorf("the former leader writes: %v", err)
		}
		if again := of(alone); again <= second {
			t.Errorf("after a restart it leads as %d after %d", again, second)
		}
		if other := of(cluster); other == 0 {
			t.Error("its lease has not expired at once")
		}
	})
}

func TestOneLeader(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		lead := func(holder string) int64 {
			t.Helper()
			epoch, err := s.Lead(t.Context(), "controller", holder, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			return epoch
		}
		fence := func(epoch int64) error {
			ctx, end := store.AsLeader(t.Context(), "controller", epoch)
			defer end()
			err := s.InTx(ctx, func(*store.Queries) error { return nil })
			if fenced := errors.Is(err, store.ErrFenced); fenced != (ctx.Err() != nil) {
				t.Errorf("the leader was fenced: %v; its context: %v", fenced, ctx.Err())
			}
			return err
		}
		first := lead("a")
		if first == 0 || lead("b") != 0 || lead("a") != first {
			t.Fatalf("a leads as %d", first)
		}
		clock.Advance(11 * time.Second) // a was paused for longer than its lease
		second := lead("b")
		if second <= first || lead("a") != 0 {
			t.Fatalf("b leads as %d, after %d", second, first)
		}
		if err := fence(first); !errors.Is(err, store.ErrFenced) {
			t.Errorf("the old leader writes: %v", err)
		}
		if err := fence(second); err != nil {
			t.Errorf("the leader may not write: %v", err)
		}
		if err := s.Resign(t.Context(), "controller", "b"); err != nil {
			t.Fatal(err)
		}
		third := lead("a")
		if third <= second || fence(second) == nil {
			t.Errorf("after b resigned a leads as %d", third)
		}
		clock.Advance(time.Minute)
		if again := lead("a"); again <= third {
			t.Errorf("a lease that had run out goes on as %d", again)
		}
	})
}

// A leader whose clock is ahead is followed as soon as another one is, when it resigns and
// when it is killed.
func TestLeaderWithAnotherClock(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			all := processes(t, dialect, 2)
			ahead, other := all[0], all[1]
			ahead.Clock = func() time.Time { return time.Now().Add(time.Hour) }
			lead := func(p *process, holder string) int64 {
				t.Helper()
				epoch, err := p.Lead(t.Context(), "controller", holder, 10*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				return epoch
			}
			lead(ahead, "ahead")
			if err := ahead.Resign(t.Context(), "controller", "ahead"); err != nil {
				t.Fatal(err)
			}
			if lead(other, "other") == 0 {
				t.Error("nobody leads after the leader has resigned")
			}
			if err := other.Resign(t.Context(), "controller", "other"); err != nil {
				t.Fatal(err)
			}
			for range 3 { // it renews its lease
				lead(ahead, "ahead")
				ahead.elapsed.Add(int64(6 * time.Second))
				if lead(other, "other") != 0 {
					t.Fatal("two lead")
				}
			}
			ahead.elapsed.Add(int64(11 * time.Second))
			if lead(other, "other") == 0 {
				t.Error("nobody leads after the leader was killed")
			}
		})
	}
}

// What needs a database for itself is refused as long as servers of a cluster use it.
func TestCheckUnused(t *testing.T) {
	s := storetest.Open(t, "postgres")
	if err := s.CheckUnused(t.Context()); err != nil {
		t.Errorf("without servers: %v", err)
	}
	lease, err := s.Join(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckUnused(t.Context()); err != nil {
		t.Errorf("beside a server that has ended: %v", err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lease.Run(ctx, func(error) {})
	}()
	if err := s.CheckUnused(t.Context()); err == nil {
		t.Error("a server uses it")
	}
	end()
	<-ended
}

func TestOneLeaderOfMany(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var leaders atomic.Int64
		storetest.Concurrently(20, func(i int) {
			epoch, err := s.Lead(t.Context(), "controller", string(rune('a'+i)), time.Minute)
			if err != nil {
				t.Error(err)
			}
			if epoch != 0 {
				leaders.Add(1)
			}
		})
		if n := leaders.Load(); n != 1 {
			t.Errorf("%d lead", n)
		}
	})
}

// Servers on one PostgreSQL get the topics of each other's commits, but not of
// rollbacks.
func TestServersNotifyEachOther(t *testing.T) {
	url := storetest.Postgres(t)
	open := func() *store.Store {
		s, err := store.Open(t.Context(), url, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	one, other := open(), open()
	db, err := one.SQL()
	if err == nil {
		err = migrations.Up(t.Context(), db, "postgres")
	}
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan []string, 100)
	other.OnChange(func(topics []string) { received <- topics })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		other.Listen(ctx, func(err error) { t.Log(err) })
	}()
	next := func() []string {
		t.Helper()
		select {
		case topics := <-received:
			return topics
		case <-time.After(time.Minute):
			t.Fatal("nothing was received")
			return nil
		}
	}
	if first := next(); !slices.Equal(first, []string{store.AllTopics}) {
		t.Errorf("at the beginning %v", first)
	}
	storetest.User(t, one, "a@example.org", false)
	touch := func(s *store.Store, topic string, err error) {
		if got := s.InTx(t.Context(), func(q *store.Queries) error { q.Touch(topic); return err }); !errors.Is(got, err) {
			t.Error(got)
		}
	}
	touch(one, "undone", errSecret)
	touch(one, "pool", nil)
	touch(other, "own", nil)
	seen := map[string]int{}
	for seen["pool"] == 0 || seen["own"] == 0 {
		for _, topic := range next() {
			seen[topic]++
		}
	}
	if seen["undone"] != 0 || seen["own"] != 1 || seen["pool"] != 1 {
		t.Errorf("heard %v", seen)
	}
	if _, err := db.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"); err != nil {
		t.Fatal(err)
	}
	if again := next(); !slices.Equal(again, []string{store.AllTopics, store.Reconnected}) {
		t.Errorf("when it listens again %v", again)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it goes on listening")
	}
}

// A paused transaction of a server blocks the others for a limited time only.
func TestIdleTransactionsEnd(t *testing.T) {
	s := storetest.Open(t, "postgres")
	db, err := s.SQL()
	if err != nil {
		t.Fatal(err)
	}
	var limit string
	if err := db.QueryRow("SHOW idle_in_transaction_session_timeout").Scan(&limit); err != nil || limit != "15s" {
		t.Errorf("the limit is %q, %v", limit, err)
	}
}
