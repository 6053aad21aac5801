package store_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

func TestTransactionIsAllOrNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		err := s.InTx(t.Context(), func(q *store.Queries) error {
			if err := q.AddEvent(&w.workspace, models.Say("lost")); err != nil {
				return err
			}
			return errSecret
		})
		if !errors.Is(err, errSecret) {
			t.Errorf("got %v", err)
		}
		if events, err := s.Read(t.Context()).WorkspaceEvents(w.workspace.ID); err != nil || len(events) != 1 {
			t.Errorf("%d events, %v", len(events), err)
		}
	})
}

func TestListenersAreCalledAfterTheCommit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		var heard []string
		s.OnChange(func(topics []string) { heard = append(heard, topics...) })
		_ = s.InTx(t.Context(), func(q *store.Queries) error { q.Touch("pool"); return errSecret })
		storetest.InTx(t, s, func(q *store.Queries) error { return nil })
		if len(heard) > 0 {
			t.Errorf("heard of what did not happen: %v", heard)
		}
		w.event(t, models.Say("happened"))
		slices.Sort(heard)
		if want := []string{"project:1", "user:1", "workspace:1"}; !slices.Equal(heard, want) {
			t.Errorf("heard %v, want %v", heard, want)
		}
	})
}

// PostgreSQL ends one of two transactions that lock the same rows in opposite
// order, and it must be retried; SQLite has one writer.
func TestDeadlockIsRetried(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		projects := []models.Project{addWorld(t, s, "a").project, addWorld(t, s, "b").project}
		var met sync.WaitGroup // both hold their first row
		met.Add(2)
		var kinds storetest.ErrorCounts
		storetest.Concurrently(2, func(i int) {
			first := s.Dialect() == "postgres"
			kinds.Add(s.InTx(t.Context(), func(q *store.Queries) error {
				for step := range 2 {
					p, err := q.LockProject(store.AllProjects, projects[(i+step)%2].ID)
					if err != nil {
						return err
					}
					p.Quota.CPUMilli++
					if err := q.UpdateProject(&p); err != nil {
						return err
					}
					if first {
						first = false
						met.Done()
						met.Wait()
					}
				}
				return nil
			}))
		})
		kinds.Want(t, 2, "", 2)
		for _, p := range projects {
			if got, err := s.Read(t.Context()).Project(store.AllProjects, p.ID); err != nil || got.Quota.CPUMilli != 8002 || got.Version != 3 {
				t.Errorf("%+v, %v", got, err)
			}
		}
	})
}

func TestConcurrentTransactionsLoseNothing(t *testing.T) {
	const writers, rounds = 8, 10
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		var kinds storetest.ErrorCounts
		storetest.Concurrently(writers, func(int) {
			for range rounds {
				kinds.Add(s.InTx(t.Context(), func(q *store.Queries) error {
					p, err := q.LockProject(store.AllProjects, w.project.ID)
					if err != nil {
						return err
					}
					p.Quota.CPUMilli++
					return q.UpdateProject(&p)
				}))
			}
		})
		kinds.Want(t, writers*rounds, "", writers*rounds)
		if p, err := s.Read(t.Context()).Project(store.AllProjects, w.project.ID); err != nil || p.Quota.CPUMilli != 8000+writers*rounds {
			t.Errorf("%d, %v", p.Quota.CPUMilli, err)
		}
	})
}

// The command line opens the file of a running server.
func TestTwoProcessesShareASQLiteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "weir.db")
	var stores []*store.Store
	for range 2 {
		s, err := store.Open(t.Context(), "", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		stores = append(stores, s)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
	migrate(t, stores[0])
	w := newWorld(t, stores[0])
	var kinds storetest.ErrorCounts
	storetest.Concurrently(8, func(i int) {
		kinds.Add(stores[i%2].InTx(context.Background(), func(q *store.Queries) error {
			return q.AddEvent(&w.workspace, models.Say("%d", i))
		}))
	})
	kinds.Want(t, 8, "", 8)
}

func TestReadsSeeCommitsAndWriteNothing(t *testing.T) {
	s := storetest.Open(t, "sqlite")
	w := newWorld(t, s)
	if err := s.Read(t.Context()).AddEvent(&w.workspace, models.Say("sneaked in")); err == nil {
		t.Error("a reading connection wrote")
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ url, path string }{
		{"postgres://127.0.0.1:1/none?connect_timeout=1", ""},
		{"", filepath.Join(os.DevNull, "weir.db")},
	} {
		if s, err := store.Open(t.Context(), c.url, c.path); err == nil {
			t.Errorf("%+v was opened", c)
			s.Close()
		}
	}
}

// Errors are logged without values.
func TestSecretsAreNotLogged(t *testing.T) {
	var log bytes.Buffer
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		s.LogTo(slog.New(slog.NewTextHandler(&log, nil)))
		w := newWorld(t, s)
		w.workspace.Secret, w.workspace.State = "do-not-tell", "no such state"
		err := s.InTx(t.Context(), func(q *store.Queries) error {
			return q.Transition(&w.workspace, models.StateRequested, models.Text{})
		})
		if err == nil || !strings.Contains(log.String(), "workspaces") || strings.Contains(log.String(), "do-not-tell") {
			t.Errorf("%v; log: %s", err, log.String())
		}
		log.Reset()
	})
}

func TestTimesReadAsTheyWereWritten(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		now := time.Date(2030, 1, 2, 3, 4, 5, 678_901_999, time.FixedZone("east", 8*3600))
		s.Clock = func() time.Time { return now }
		w := newWorld(t, s)
		got, err := s.Read(t.Context()).Workspace(store.AllProjects, w.workspace.ID)
		if want := time.Date(2030, 1, 1, 19, 4, 5, 678_901_000, time.UTC); err != nil || !got.RequestedAt.Equal(want) {
			t.Errorf("%v, %v; want %v", got.RequestedAt, err, want)
		}
	})
}

// A session's end can be in any time zone.
func TestSessionsEnd(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		end := clock.Now().Add(time.Hour).In(time.FixedZone("west", -8*3600))
		storetest.InTx(t, s, func(q *store.Queries) error {
			if err := q.PutSession(models.Session{Token: "t", Data: []byte("old"), ExpiresAt: end}); err != nil {
				return err
			}
			return q.PutSession(models.Session{Token: "t", Data: []byte{0, 1}, ExpiresAt: end})
		})
		q := s.Read(t.Context())
		if got, err := q.SessionByToken("t", s.Now()); err != nil || string(got.Data) != "\x00\x01" {
			t.Errorf("%q, %v", got.Data, err)
		}
		clock.Advance(time.Hour)
		_, err := q.SessionByToken("t", s.Now())
		kind(t, err, models.KindNotFound)
		clock.Advance(10 * time.Minute)
		storetest.InTx(t, s, func(q *store.Queries) error {
			if n, err := q.DeleteExpired(s.Now()); err != nil || n != 1 {
				t.Errorf("%d deleted, %v", n, err)
			}
			return q.DeleteSession("t")
		})
	})
}

// A concurrent request stores its session after sign-out.
func TestAnEndedSessionStaysEnded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		session := models.Session{Token: "t", Data: []byte("x"), ExpiresAt: s.Now().Add(time.Hour)}
		storetest.InTx(t, s, func(q *store.Queries) error {
			return errors.Join(q.PutSession(session), q.DeleteSession("t"), q.PutSession(session))
		})
		_, err := s.Read(t.Context()).SessionByToken("t", s.Now())
		kind(t, err, models.KindNotFound)
		if valid, err := s.Read(t.Context()).Authenticated(s.Now(), "t"); err != nil || len(valid) > 0 {
			t.Errorf("it still speaks: %v, %v", valid, err)
		}
		before := s.Now().Add(-time.Hour) // as of a server whose clock is behind
		if valid, err := s.Read(t.Context()).Authenticated(before, "t"); err != nil || len(valid) > 0 {
			t.Errorf("it still speaks to another server: %v, %v", valid, err)
		}
		clock := s.Clock
		s.Clock = func() time.Time { return clock().Add(-time.Hour) }
		storetest.InTx(t, s, func(q *store.Queries) error { return q.PutSession(session) })
		_, err = s.Read(t.Context()).SessionByToken("t", before)
		kind(t, err, models.KindNotFound)
	})
}

// Only one server works on a database; the next waits for its end.
func TestClaim(t *testing.T) {
	url := storetest.Postgres(t)
	var stores [2]*store.Store
	for i := range stores {
		s, err := store.Open(t.Context(), url, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		stores[i] = s
	}
	first, err := stores[0].LockDatabase(t.Context())
	if err != nil || first.Holds(t.Context()) != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := stores[1].LockDatabase(short); err == nil {
		t.Fatal("two servers claim one database")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := stores[1].LockDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(second.Holds(t.Context()), second.Close()); err != nil {
		t.Error(err)
	}
}
