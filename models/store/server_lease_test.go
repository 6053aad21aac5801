package store_test

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/migrations"
	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

const (
	testTimeout = time.Minute     // longer than any step takes
	expire      = 7 * time.Second // longer than a lease, shorter than evictAfter
	evict       = 9 * time.Second // longer than evictAfter
)

// recordingListener is a RevocationListener that records its calls.
type recordingListener struct {
	mu      sync.Mutex
	revoked []string
	cuts    int
	block   chan struct{} // when not nil, Revoked returns after it is closed
}

func (h *recordingListener) Revoked(_ context.Context, keys []string) {
	h.mu.Lock()
	block := h.block
	h.revoked = append(h.revoked, keys...)
	h.mu.Unlock()
	if block != nil {
		<-block
	}
}

func (h *recordingListener) Cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cuts++
}

func (h *recordingListener) has(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.revoked, key)
}

func (h *recordingListener) cut() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cuts
}

func (h *recordingListener) blockRevoked() (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	block := make(chan struct{})
	h.block = block
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.block = nil
		close(block)
	}
}

// process is one of several processes on one database.
type process struct {
	*store.Store
	*recordingListener
	lease   *store.ServerLease
	elapsed *atomic.Int64
}

// processes opens one database several times, with one clock for leases.
func processes(t *testing.T, dialect string, n int) []*process {
	t.Helper()
	url, path := "", filepath.Join(t.TempDir(), "weir.db")
	if dialect == "postgres" {
		url = storetest.Postgres(t)
	}
	clock := &atomic.Int64{}
	var all []*process
	for range n {
		s, err := store.Open(t.Context(), url, path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		p := &process{Store: s, recordingListener: &recordingListener{}, elapsed: clock}
		s.Elapsed = func() time.Duration { return time.Duration(clock.Load()) }
		s.OnRevoke(p.recordingListener)
		all = append(all, p)
	}
	db, err := all[0].SQL()
	if err == nil {
		err = migrations.Up(t.Context(), db, dialect)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// serve runs a process as a server, optionally with LISTEN.
func (p *process) serve(t *testing.T, sole, listens bool) (stop func()) {
	t.Helper()
	var err error
	if p.lease, err = p.Join(t.Context(), sole); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { p.lease.Run(ctx, func(err error) { t.Log(err) }) })
	if listens {
		work.Go(func() { p.Listen(ctx, func(err error) { t.Log(err) }) })
	}
	stop = sync.OnceFunc(func() { cancel(); work.Wait() })
	t.Cleanup(stop)
	return stop
}

func (p *process) pass(d time.Duration) { p.elapsed.Add(int64(d)) }

// revoke revokes a user's key, and reports when the call returns.
func (p *process) revoke(ctx context.Context, user int64) <-chan error {
	returned := make(chan error, 1)
	go func() {
		returned <- p.InRevokingTx(ctx, func(q *store.Queries) error { q.Revoke("user", user); return nil })
	}()
	return returned
}

func await[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(testTimeout):
		t.Fatal("not in time: " + what)
	}
	return v
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(testTimeout); !so(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("not in time: " + what)
		}
	}
}

func notYet(t *testing.T, returned <-chan error) {
	t.Helper()
	select {
	case err := <-returned:
		t.Fatalf("the call has returned already: %v", err)
	default:
	}
}

// A revocation returns when all servers have applied it, with LISTEN or by
// polling.
func TestRevocationIsAppliedEverywhere(t *testing.T) {
	for name, listens := range map[string]bool{"listening": true, "polling": false} {
		t.Run(name, func(t *testing.T) {
			all := processes(t, "postgres", 3)
			one, other := all[0], all[1]
			for _, p := range all {
				p.serve(t, false, listens)
			}
			for i := range int64(20) {
				by := all[i%3]
				if err := await(t, "the revocation", by.revoke(t.Context(), i)); err != nil {
					t.Fatal(err)
				}
				for k, p := range all {
					if !p.has(store.RevocationKey("user", i)) {
						t.Fatalf("server %d has not carried out %d", k, i)
					}
				}
			}
			release := other.blockRevoked()
			returned := one.revoke(t.Context(), 100)
			eventually(t, "the other begins", func() bool { return other.has("user:100") })
			notYet(t, returned)
			// A transaction without revocations does not wait.
			if err := one.InRevokingTx(t.Context(), func(q *store.Queries) error { q.Touch("pool"); return nil }); err != nil {
				t.Error(err)
			}
			release()
			if err := await(t, "the revocation", returned); err != nil {
				t.Error(err)
			}
			if !one.lease.Holds() || !other.lease.Holds() {
				t.Error("a seat was lost")
			}
		})
	}
}

// A server without heartbeats closes its connections at the end of its lease;
// only then is it evicted. After it comes back nothing is open.
func TestServerWithoutHeartbeatsIsEvicted(t *testing.T) {
	all := processes(t, "postgres", 2)
	one, other := all[0], all[1]
	one.serve(t, false, true)
	other.serve(t, false, true)
	release := other.blockRevoked()
	returned := one.revoke(t.Context(), 7)
	eventually(t, "the other begins", func() bool { return other.has("user:7") })
	before := other.cut()
	one.pass(expire)
	if other.lease.Holds() {
		t.Error("a server that does not beat may pass bytes on")
	}
	eventually(t, "the other cuts", func() bool { return other.cut() > before })
	eventually(t, "the first beats", one.lease.Holds)
	notYet(t, returned)
	one.pass(evict)
	if err := await(t, "the revocation", returned); err != nil {
		t.Error(err)
	}
	if other.lease.Holds() {
		t.Error("a server that is given up may pass bytes on")
	}
	before = other.cut()
	release()
	eventually(t, "the other is back", other.lease.Holds)
	if other.cut() == before {
		t.Error("it comes back with what was open before")
	}
	if err := await(t, "a revocation", one.revoke(t.Context(), 8)); err != nil || !other.has("user:8") {
		t.Errorf("after it came back: %v", err)
	}
}

// A killed server is waited for until its lease has expired, and then evicted;
// one that leaves is not waited for.
func TestServersThatEnd(t *testing.T) {
	all := processes(t, "postgres", 4)
	one := all[0]
	one.serve(t, false, true)
	for _, p := range all[1:] {
		stop := p.serve(t, false, true)
		stop()
	}
	if err := all[1].lease.Leave(t.Context()); err != nil || all[1].lease.Holds() {
		t.Errorf("leaving: %v", err)
	}
	returned := one.revoke(t.Context(), 1)
	eventually(t, "it is carried out here", func() bool { return one.has("user:1") })
	notYet(t, returned)
	one.pass(expire)
	eventually(t, "the first beats", one.lease.Holds)
	notYet(t, returned)
	one.pass(evict)
	if err := await(t, "the revocation", returned); err != nil {
		t.Error(err)
	}
	if err := await(t, "the next", one.revoke(t.Context(), 2)); err != nil {
		t.Error(err)
	}
	if n := servers(t, one.Store); n != 1 {
		t.Errorf("there are %d servers", n)
	}
}

func servers(t *testing.T, s *store.Store) (n int) {
	t.Helper()
	db, err := s.SQL()
	if err == nil {
		err = db.QueryRow("SELECT COUNT(*) FROM servers").Scan(&n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// When the client gives up waiting the error says so, and the revocation is
// applied here nevertheless.
func TestClientThatDoesNotWait(t *testing.T) {
	all := processes(t, "postgres", 2)
	one, other := all[0], all[1]
	one.serve(t, false, true)
	other.serve(t, false, true)
	release := other.blockRevoked()
	defer release()
	ctx, leave := context.WithCancel(t.Context())
	returned := one.revoke(ctx, 3)
	eventually(t, "it is carried out here, and the other begins", func() bool { return one.has("user:3") && other.has("user:3") })
	leave()
	kind(t, await(t, "the call", returned), models.KindUnavailable)
}

// A command on a server's database waits for the server, too.
func TestCommandBesideTheSoleServer(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			all := processes(t, dialect, 3)
			killed, server, command := all[0], all[1], all[2]
			killed.serve(t, true, true)()
			stop := server.serve(t, true, true)
			if err := await(t, "the revocation", command.revoke(t.Context(), 4)); err != nil || !server.has("user:4") {
				t.Errorf("the server has carried out %v, %v", server.revoked, err)
			}
			server.pass(time.Hour) // it needs no lease
			if !server.lease.Holds() {
				t.Error("the only server passes nothing on")
			}
			stop()
			returned := command.revoke(t.Context(), 5)
			eventually(t, "it is carried out here", func() bool { return command.has("user:5") })
			notYet(t, returned)
			eventually(t, "nobody is waited for", func() bool {
				server.pass(time.Second)
				return len(returned) > 0
			})
			if err := <-returned; err != nil {
				t.Error(err)
			}
		})
	}
}

// Without the database the lease of a server expires; later it is acquired
// again.
func TestServerWithoutDatabase(t *testing.T) {
	one := processes(t, "postgres", 1)[0]
	one.serve(t, false, false)
	db, err := one.SQL()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("ALTER TABLE servers RENAME TO away"); err != nil {
		t.Fatal(err)
	}
	before := one.cut()
	one.pass(expire)
	eventually(t, "it cuts", func() bool { return one.cut() > before && !one.lease.Holds() })
	if _, err := db.Exec("ALTER TABLE away RENAME TO servers"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is back", one.lease.Holds)
}

// Revocations work after lost connections to the database.
func TestServersReconnect(t *testing.T) {
	all := processes(t, "postgres", 2)
	one, other := all[0], all[1]
	one.serve(t, false, true)
	other.serve(t, false, true)
	db, err := one.SQL()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a transaction is possible", func() bool { return <-one.revoke(t.Context(), 1) == nil })
	for i := range int64(5) {
		if err := await(t, "the revocation", one.revoke(t.Context(), 10+i)); err != nil || !other.has(store.RevocationKey("user", 10+i)) {
			t.Fatalf("revocation %d: %v", i, err)
		}
	}
}
