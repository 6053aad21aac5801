package models_test

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
	"weir/models/modelstest"
)

const (
	patient = 20 * time.Second // longer than anything takes here
	lapse   = 7 * time.Second  // longer than a lease, shorter than others' patience
	forget  = 9 * time.Second  // longer than others' patience
)

// hands is a Carrier that notes what it is asked for.
type hands struct {
	mu      sync.Mutex
	revoked []string
	cuts    int
	hold    chan struct{} // when not nil, carrying out takes until it is closed
}

func (h *hands) Revoked(_ context.Context, ties []string) {
	h.mu.Lock()
	hold := h.hold
	h.revoked = append(h.revoked, ties...)
	h.mu.Unlock()
	if hold != nil {
		<-hold
	}
}

func (h *hands) Cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cuts++
}

func (h *hands) has(tie string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.revoked, tie)
}

func (h *hands) cut() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cuts
}

func (h *hands) stick() (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	hold := make(chan struct{})
	h.hold = hold
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.hold = nil
		close(hold)
	}
}

// process is one that works on a database shared with others.
type process struct {
	*models.Store
	*hands
	seat    *models.Seat
	elapsed *atomic.Int64
}

// processes opens one database several times. Their clock for leases is one.
func processes(t *testing.T, dialect string, n int) []*process {
	t.Helper()
	url, path := "", filepath.Join(t.TempDir(), "weir.db")
	if dialect == "postgres" {
		url = modelstest.Postgres(t)
	}
	clock := &atomic.Int64{}
	var all []*process
	for range n {
		s, err := models.Open(t.Context(), url, path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		p := &process{Store: s, hands: &hands{}, elapsed: clock}
		s.Elapsed = func() time.Duration { return time.Duration(clock.Load()) }
		s.Carry(p.hands)
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

// serve lets a process be a server; it hears the others when it listens.
func (p *process) serve(t *testing.T, sole, listens bool) (stop func()) {
	t.Helper()
	var err error
	if p.seat, err = p.Join(t.Context(), sole); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { p.seat.Run(ctx, func(err error) { t.Log(err) }) })
	if listens {
		work.Go(func() { p.Listen(ctx, func(err error) { t.Log(err) }) })
	}
	stop = sync.OnceFunc(func() { cancel(); work.Wait() })
	t.Cleanup(stop)
	return stop
}

func (p *process) pass(d time.Duration) { p.elapsed.Add(int64(d)) }

// revoke takes something away from a user, and tells when the call returns.
func (p *process) revoke(ctx context.Context, user int64) <-chan error {
	returned := make(chan error, 1)
	go func() {
		returned <- p.Revoking(ctx, func(q *models.Queries) error { q.Revoke("user", user); return nil })
	}()
	return returned
}

func await[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patient):
		t.Fatal("not in time: " + what)
	}
	return v
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patient); !so(); <-tick.C {
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

// A revocation returns when all servers have carried it out, whether they
// listen or only look.
func TestRevocationIsCarriedOutEverywhere(t *testing.T) {
	for name, listens := range map[string]bool{"listening": true, "looking": false} {
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
					if !p.has(models.Tie("user", i)) {
						t.Fatalf("server %d has not carried out %d", k, i)
					}
				}
			}
			release := other.stick()
			returned := one.revoke(t.Context(), 100)
			eventually(t, "the other begins", func() bool { return other.has("user:100") })
			notYet(t, returned)
			// What revokes nothing waits for nobody.
			if err := one.Revoking(t.Context(), func(q *models.Queries) error { q.Touch("pool"); return nil }); err != nil {
				t.Error(err)
			}
			release()
			if err := await(t, "the revocation", returned); err != nil {
				t.Error(err)
			}
			if !one.seat.Holds() || !other.seat.Holds() {
				t.Error("a seat was lost")
			}
		})
	}
}

// A server that stops working is cut by itself at the end of its lease; only
// then is it waited for no longer. When it comes back it starts with nothing.
func TestStuckServerLosesItsSeat(t *testing.T) {
	all := processes(t, "postgres", 2)
	one, other := all[0], all[1]
	one.serve(t, false, true)
	other.serve(t, false, true)
	release := other.stick()
	returned := one.revoke(t.Context(), 7)
	eventually(t, "the other begins", func() bool { return other.has("user:7") })
	before := other.cut()
	one.pass(lapse)
	if other.seat.Holds() {
		t.Error("a server that does not beat may pass bytes on")
	}
	eventually(t, "the other cuts", func() bool { return other.cut() > before })
	eventually(t, "the first beats", one.seat.Holds)
	notYet(t, returned)
	one.pass(forget)
	if err := await(t, "the revocation", returned); err != nil {
		t.Error(err)
	}
	if other.seat.Holds() {
		t.Error("a server that is given up may pass bytes on")
	}
	before = other.cut()
	release()
	eventually(t, "the other is back", other.seat.Holds)
	if other.cut() == before {
		t.Error("it comes back with what was open before")
	}
	if err := await(t, "a revocation", one.revoke(t.Context(), 8)); err != nil || !other.has("user:8") {
		t.Errorf("after it came back: %v", err)
	}
}

// Who is killed is waited for until its lease must have ended, and then by
// nobody again; who leaves is not waited for.
func TestServersThatGo(t *testing.T) {
	all := processes(t, "postgres", 4)
	one := all[0]
	one.serve(t, false, true)
	for _, p := range all[1:] {
		stop := p.serve(t, false, true)
		stop()
	}
	if err := all[1].seat.Leave(t.Context()); err != nil || all[1].seat.Holds() {
		t.Errorf("leaving: %v", err)
	}
	returned := one.revoke(t.Context(), 1)
	eventually(t, "it is carried out here", func() bool { return one.has("user:1") })
	notYet(t, returned)
	one.pass(lapse)
	eventually(t, "the first beats", one.seat.Holds)
	notYet(t, returned)
	one.pass(forget)
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

func servers(t *testing.T, s *models.Store) (n int) {
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

// A client that does not wait is told that others may lag behind, and what it
// revoked is gone here nevertheless.
func TestClientThatDoesNotWait(t *testing.T) {
	all := processes(t, "postgres", 2)
	one, other := all[0], all[1]
	one.serve(t, false, true)
	other.serve(t, false, true)
	release := other.stick()
	defer release()
	ctx, leave := context.WithCancel(t.Context())
	returned := one.revoke(ctx, 3)
	eventually(t, "the other begins", func() bool { return other.has("user:3") })
	leave()
	kind(t, await(t, "the call", returned), models.KindUnavailable)
	if !one.has("user:3") {
		t.Error("not carried out here")
	}
}

// A command that works on a server's database waits for it, too.
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
			if !server.seat.Holds() {
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

// While the database is away a server stops by itself, and is back with it.
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
	one.pass(lapse)
	eventually(t, "it cuts", func() bool { return one.cut() > before && !one.seat.Holds() })
	if _, err := db.Exec("ALTER TABLE away RENAME TO servers"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is back", one.seat.Holds)
}

// Connections to the database break; revocations are carried out after as
// before.
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
		if err := await(t, "the revocation", one.revoke(t.Context(), 10+i)); err != nil || !other.has(models.Tie("user", 10+i)) {
			t.Fatalf("revocation %d: %v", i, err)
		}
	}
}
