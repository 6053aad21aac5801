package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"weir/migrations"
	"weir/models"
	"weir/models/store"
)

// Each runs a test on "sqlite" and on "postgres", with a fresh, migrated
// store.
func Each(t *testing.T, test func(t *testing.T, store *store.Store)) {
	t.Helper()
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) { test(t, Open(t, dialect)) })
	}
}

// Open returns a fresh, migrated store for the test, with the lease of a sole
// server. The migrations run once for each process and dialect; a store gets a
// copy of their result.
func Open(t testing.TB, dialect string) *store.Store {
	t.Helper()
	s, err := openMigrated(t, dialect)
	if err == nil {
		_, err = s.Join(context.Background(), true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openMigrated(t testing.TB, dialect string) (*store.Store, error) {
	t.Helper()
	if dialect == "postgres" {
		template, err := migratedPostgres()
		if err != nil {
			return nil, err
		}
		return open(t, postgresFrom(t, template), ""), nil
	}
	file, err := migratedSQLite()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(t.TempDir(), "weir.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return nil, err
	}
	return open(t, "", path), nil
}

// MigratedPostgres is [Postgres] with the schema, as before the first start of a server.
func MigratedPostgres(t testing.TB) string {
	t.Helper()
	template, err := migratedPostgres()
	if err != nil {
		t.Fatal(err)
	}
	url := postgresFrom(t, template)
	if err := newInstallation(url, ""); err != nil {
		t.Fatal(err)
	}
	return url
}

// MigratedSQLite writes a SQLite file with the schema, as before the first start of a server.
func MigratedSQLite(t testing.TB, path string) {
	t.Helper()
	file, err := migratedSQLite()
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err == nil {
		err = newInstallation("", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// newInstallation makes a copy of a database that of another installation.
func newInstallation(url, path string) error {
	s, err := store.Open(context.Background(), url, path)
	if err != nil {
		return err
	}
	db, err := s.SQL()
	if err == nil {
		_, err = db.Exec(fmt.Sprintf("UPDATE installation SET uid = '%032x'", rand.Uint64()))
	}
	return errors.Join(err, s.Close())
}

// OpenEmpty returns a store without the schema and without a lease.
func OpenEmpty(t testing.TB, dialect string) *store.Store {
	t.Helper()
	if dialect == "postgres" {
		return open(t, Postgres(t), "")
	}
	return open(t, "", filepath.Join(t.TempDir(), "weir.db"))
}

func open(t testing.TB, url, path string) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), url, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	if url != "" {
		return s
	}
	// The data need not survive a power failure, so nothing is synced to disk.
	db, err := s.SQL()
	if err == nil {
		_, err = db.Exec("PRAGMA synchronous = OFF")
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// migratedSQLite returns the contents of a SQLite file with the schema.
var migratedSQLite = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "weir-migrated-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "weir.db")
	err = migrate("", path)
	file, errRead := os.ReadFile(path)
	return file, errors.Join(err, errRead, os.RemoveAll(dir))
})

// migrate applies the migrations to an empty database.
func migrate(url, path string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, url, path)
	if err != nil {
		return err
	}
	db, err := s.SQL()
	if err == nil {
		err = migrations.Up(ctx, db, s.Dialect())
	}
	if err == nil { // so that no test mistakes the id of a workspace for that of its holder
		_, err = db.Exec(map[string]string{
			"sqlite":   "INSERT INTO sqlite_sequence (name, seq) VALUES ('holders', 1000)",
			"postgres": "ALTER TABLE holders ALTER COLUMN id RESTART WITH 1001"}[s.Dialect()])
	}
	return errors.Join(err, s.Close())
}

// Clock is a store's clock, which only the test advances.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock stops the store's clock at the beginning of a day.
func NewClock(s *store.Store) *Clock {
	c := &Clock{now: time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)}
	s.Clock, s.Elapsed = c.Now, func() time.Duration { return c.Now().Sub(time.Unix(0, 0)) }
	return c
}

// Now is the time that the test has set.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance advances the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// User adds an account without a password.
func User(t testing.TB, s *store.Store, email string, admin bool) models.User {
	t.Helper()
	u := models.User{Email: email, Name: email, Admin: admin, SessionGeneration: 1, Version: 1, CreatedAt: s.Now()}
	InTx(t, s, func(q *store.Queries) error { u.ID = 0; return q.CreateUser(&u) })
	return u
}

// LiveAgents lists the agents that are not revoked, by provider.
func LiveAgents(q *store.Queries) (agents []models.Agent, err error) {
	providers, err := q.Providers()
	for _, p := range providers {
		a, err := q.AgentOf(p.ID)
		if err == nil {
			agents = append(agents, a)
		} else if models.KindOf(err) != models.KindNotFound {
			return nil, err
		}
	}
	return agents, err
}

// InTx runs a transaction that must succeed.
func InTx(t testing.TB, s *store.Store, fn func(*store.Queries) error) {
	t.Helper()
	if err := s.InTx(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

// Concurrently calls fn with 0 to n-1 concurrently, and waits for all calls.
func Concurrently(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}

// ErrorCounts counts the outcomes of calls: "" for success, otherwise the error's
// kind.
type ErrorCounts struct {
	mu     sync.Mutex
	counts map[models.Kind]int
	last   error
}

// Add counts one call.
func (k *ErrorCounts) Add(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.counts == nil {
		k.counts = map[models.Kind]int{}
	}
	kind := models.Kind("")
	if err != nil {
		kind, k.last = models.KindOf(err), err
	}
	k.counts[kind]++
}

// Want fails the test unless exactly succeeded calls succeeded and others
// calls failed with the kind.
func (k *ErrorCounts) Want(t testing.TB, succeeded int, kind models.Kind, others int) {
	t.Helper()
	if k.counts[""] != succeeded || k.counts[kind] != others || len(k.counts) > 2 {
		t.Errorf("ended as %v; want %d successes and %d × %s; the last error: %v", k.counts, succeeded, others, kind, k.last)
	}
}

// Waits returns true when another transaction waits for a lock on PostgreSQL, and false
// when it ended before the transaction of q.
func Waits(t *testing.T, store *store.Store, q *store.Queries, ended chan error) bool {
	t.Helper()
	db, err := store.SQL()
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			ended <- err
			return false
		case <-tick.C:
		}
		var waiting bool
		err := db.QueryRow(`SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waiting)
		if err == nil {
			_, err = q.PoolVersion() // an idle transaction is ended
		}
		if err != nil {
			t.Fatal(err)
		}
		if waiting {
			return true
		}
	}
}
