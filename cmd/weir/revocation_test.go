package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"weir/handlers"
	"weir/migrations"
	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool"
	"weir/pool/projects"
	"weir/pool/providers"
	"weir/storage"
	"weir/workspaces"
	"weir/workspaces/proxy"
)

const (
	revocations = 1000
	patient     = time.Minute // longer than anything takes here
)

// replica is one of several servers on one database: all of a portal but what
// drives workspaces.
type replica struct {
	*portal
	projectService *projects.Service
	service        *workspaces.Service
	address        string
}

func newReplica(t *testing.T, url string) *replica {
	t.Helper()
	store, err := store.Open(t.Context(), url, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	db, err := store.SQL()
	if err == nil {
		err = migrations.Up(t.Context(), db, "postgres")
	}
	access, err2 := policies.NewAccess()
	verdicts, err3 := storage.NewVerdicts(store)
	dirs, err4 := storage.New(t.TempDir(), 1000, 1000, verdicts)
	for _, err := range []error{err, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := &replica{portal: &portal{store: store, log: slog.New(slog.DiscardHandler)}}
	r.accounts, r.pool = policies.NewAccounts(store, access), pool.New(store, access, providers.New(store, access, nil))
	r.projectService = projects.New(store, access, dirs, projects.NewCapacity(store, access, r.pool, projects.Defaults{}))
	r.service = workspaces.NewService(store, access, r.pool)
	r.proxy = proxy.New(proxy.Config{Gate: gate{r.service, r.accounts}, AppsDomain: "apps.test", LeaseHeld: r.leaseValid, Logger: slog.New(slog.DiscardHandler), OnActivity: func(int64) {},
		Page: func(w http.ResponseWriter, _ *http.Request, status int, _ *models.Error) { w.WriteHeader(status) }})
	t.Cleanup(r.proxy.Close)
	store.OnRevoke(r.proxy)
	r.app = handlers.NewApp(handlers.Config{Store: store, Accounts: r.accounts, Projects: r.projectService, Pool: r.pool,
		Catalog: workspaces.NewCatalog(store, access), Workspaces: r.service, Directories: dirs, Proxy: r.proxy,
		Holds: r.leaseValid, Logger: r.log, SessionLifetime: time.Hour})
	t.Cleanup(r.app.Close)
	r.open(t)
	return r
}

// open joins the other servers and takes requests.
func (r *replica) open(t *testing.T) {
	if err := r.acquireLease(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	endLease := r.renewLease(ctx)
	listening := make(chan struct{}, 1)
	r.store.OnChange(func(topics []string) {
		if slices.Contains(topics, store.AllTopics) { // sent once it listens
			select {
			case listening <- struct{}{}:
			default:
			}
		}
	})
	work.Go(func() { r.store.Listen(ctx, func(err error) { t.Log(err) }) })
	t.Cleanup(func() { stop(); endLease(); work.Wait() })
	server := httptest.NewServer(r.app)
	t.Cleanup(server.Close)
	r.address = server.Listener.Addr().String()
	select {
	case <-listening:
	case <-ctx.Done():
		t.Fatal("the server does not listen to the others")
	}
}

// notebook echoes WebSocket messages, and keeps those that must not come.
type notebook struct{ late atomic.Int64 }

func (n *notebook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		return
	}
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		kind, data, err := c.Read(r.Context())
		if err != nil {
			return
		}
		if string(data) == "late" {
			n.late.Add(1)
		}
		if c.Write(r.Context(), kind, data) != nil {
			return
		}
	}
}

// tenant is a member with a running workspace, who is revoked on one server
// and uses the other.
type tenant struct {
	t         *testing.T
	at, uses  *replica
	notebook  *notebook
	role      models.Role
	user      models.User
	member    models.Member
	workspace models.Workspace
	token     models.AccessToken
	secret    string
	client    *http.Client // finds every host at the other server
	touched   int          // how often the workspace was changed
	heard     sync.Map     // topic → *atomic.Int64: how often the other server has told its streams
}

var root = policies.System("test")

func newTenant(t *testing.T, name string, at, uses *replica, n *notebook, backend string) *tenant {
	t.Helper()
	v := &tenant{t: t, at: at, uses: uses, notebook: n, user: storetest.User(t, at.store, name+"@example.org", false)}
	uses.store.OnChange(func(topics []string) { // after the streams
		for _, topic := range topics {
			n, _ := v.heard.LoadOrStore(topic, new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
		}
	})
	ctx, some := t.Context(), models.Resources{CPUMilli: 1000, MemoryMiB: 1024}
	p, err := at.projectService.CreateProject(ctx, root, projects.ProjectInput{Name: name, Quota: some.Input()})
	if err == nil {
		v.role, err = at.projectService.CreateRole(ctx, root, p.ID, projects.RoleInput{Name: "r", Permission: models.PermissionMember, Limit: some.Input()})
	}
	if err == nil {
		v.member, err = at.projectService.AddMember(ctx, root, p.ID, projects.MemberInput{Email: v.user.Email, RoleID: v.role.ID})
	}
	if err != nil {
		t.Fatal(err)
	}
	storetest.InTx(t, at.store, func(q *store.Queries) error {
		e := models.Environment{Name: name, Language: "none", LanguageVersion: "1", Version: 1, CreatedAt: q.Now()}
		if err := q.CreateEnvironment(&e); err != nil {
			return err
		}
		v.workspace = models.Workspace{ProjectID: p.ID, MemberID: v.member.ID, UserID: v.user.ID, EnvironmentID: e.ID, Name: "nb",
			State: models.StateRunning, Generation: 1, Endpoint: models.Endpoint{Network: "tcp", Address: backend},
			Demand: models.Demand{CPUMilli: 100}, Version: 1, RequestedAt: q.Now()}
		return q.CreateWorkspace(&v.workspace, models.Say("Running."))
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", uses.address)
	}
	v.client = &http.Client{Transport: &http.Transport{DialContext: dial},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(v.client.CloseIdleConnections)
	if err := v.awaitTold(ctx); err != nil { // of its beginning
		t.Fatal(err)
	}
	return v
}

// touch changes the workspace, and returns when every stream that follows it
// has been told: none is told late, of something that is long over.
func (v *tenant) touch(ctx context.Context) error {
	if err := v.at.store.InTx(ctx, func(q *store.Queries) error { q.Touch("workspace", v.workspace.ID); return nil }); err != nil {
		return err
	}
	return v.awaitTold(ctx)
}

// awaitTold returns when the other server's streams know of one change more.
func (v *tenant) awaitTold(ctx context.Context) error {
	v.touched++
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if n, ok := v.heard.Load(store.RevocationKey("workspace", v.workspace.ID)); ok && n.(*atomic.Int64).Load() >= int64(v.touched) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// kinds are the ways in which the tenant's right ends, each with what gives it
// back.
func (v *tenant) kinds() []func() (back func() error, err error) {
	ctx, none := v.t.Context(), func() error { return nil }
	account := func(disabled bool) error {
		_, err := v.at.accounts.UpdateUser(ctx, root, v.user.ID, policies.UserChange{Name: v.user.Name, Disabled: disabled})
		return err
	}
	return []func() (func() error, error){
		func() (func() error, error) {
			return none, v.at.accounts.DeleteToken(ctx, v.actor(), v.token.ID)
		},
		func() (func() error, error) {
			return func() error {
				_, err := v.at.projectService.AddMember(ctx, root, v.workspace.ProjectID, projects.MemberInput{Email: v.user.Email, RoleID: v.role.ID})
				return err
			}, v.at.projectService.RemoveMember(ctx, root, v.workspace.ProjectID, v.member.ID)
		},
		func() (func() error, error) {
			return func() error { return account(false) }, account(true)
		},
	}
}

// actor is the tenant as the token speaks for it.
func (v *tenant) actor() policies.Actor {
	actor, err := v.at.accounts.ActorByToken(v.t.Context(), v.secret)
	if err != nil {
		v.t.Error(err)
	}
	return actor
}

func (v *tenant) get(url string) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(v.t.Context(), patient)
	v.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+v.secret)
	return v.client.Do(r)
}

func (v *tenant) origin() string { return fmt.Sprintf("http://ws-%d.apps.test", v.workspace.ID) }

// status is the answer's to a plain request.
func (v *tenant) status(url string) int {
	res, err := v.get(url)
	if err != nil {
		return 0 // cut
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // its end may be cut
	return res.StatusCode
}

// socket opens a WebSocket by the token or, by visit, as a browser does.
func (v *tenant) socket(visit string) (*websocket.Conn, error) {
	header := http.Header{"Authorization": {"Bearer " + v.secret}}
	if visit != "" {
		header = http.Header{"Cookie": {"weir_visit=" + visit}, "Origin": {v.origin()}}
	}
	c, _, err := websocket.Dial(v.t.Context(), v.origin(), &websocket.DialOptions{HTTPClient: v.client, HTTPHeader: header})
	if err != nil {
		return nil, err
	}
	return c, echoes(v.t.Context(), c, "early")
}

func echoes(ctx context.Context, c *websocket.Conn, text string) error {
	if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		return err
	}
	_, got, err := c.Read(ctx)
	if err == nil && string(got) != text {
		err = fmt.Errorf("%q came back as %q", text, got)
	}
	return err
}

// round gives the tenant a token, lets it be used in every way on the other
// server, ends the right, and looks whether it is used afterwards.
func (v *tenant) round(kind func() (func() error, error)) error {
	ctx, cancel := context.WithTimeout(v.t.Context(), patient)
	defer cancel()
	var err error
	v.token, v.secret, err = v.at.accounts.CreateTokenFor(ctx, root, v.user.Email, policies.NewToken{Name: policies.NewSecret()})
	if err != nil {
		return err
	}
	link, err := v.at.service.Open(ctx, v.actor(), v.workspace.ID, workspaces.OpenInput{})
	if err != nil {
		return err
	}
	visit, err := v.uses.service.Redeem(ctx, v.workspace.ID, link)
	if err != nil {
		return err
	}
	one, err := v.socket("")
	if err != nil {
		return err
	}
	defer one.CloseNow()
	two, err := v.socket(visit.Secret)
	if err != nil {
		return err
	}
	defer two.CloseNow()
	stream, err := v.get(fmt.Sprintf("http://portal.test/events?topic=workspace:%d", v.workspace.ID))
	if err != nil {
		return err
	}
	defer stream.Body.Close()

	returned, stop := v.hammer()
	back, err := kind()
	returned.Store(true)
	if err != nil {
		return err
	}
	return v.after(ctx, []*websocket.Conn{one, two}, stream, stop, back)
}

// hammer asks again and again, so that admissions are under way at every
// moment. A request that begins after the revocation has returned must be
// refused.
func (v *tenant) hammer() (returned *atomic.Bool, stop func() error) {
	returned = &atomic.Bool{}
	result := make(chan error, 1)
	go func() {
		for {
			after := returned.Load()
			for _, url := range []string{v.origin() + "/", fmt.Sprintf("http://portal.test/api/v1/workspaces/%d", v.workspace.ID)} {
				status := v.status(url)
				if after && (status == 0 || status < 400) {
					result <- fmt.Errorf("%s is answered %d after the revocation", url, status)
					return
				}
			}
			if after {
				result <- nil
				return
			}
		}
	}()
	return returned, func() error { return <-result }
}

// after holds what was open to passing nothing, and gives the right back.
func (v *tenant) after(ctx context.Context, open []*websocket.Conn, stream *http.Response, stop, back func() error) error {
	for _, c := range open {
		if err := echoes(ctx, c, "late"); err == nil {
			return fmt.Errorf("a WebSocket is used after the revocation")
		}
	}
	if err := v.touch(ctx); err != nil {
		return err
	}
	told := bufio.NewScanner(stream.Body)
	for told.Scan() {
		if strings.HasPrefix(told.Text(), "data:") {
			return fmt.Errorf("a stream tells %q after the revocation", told.Text())
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("a stream is open after the revocation")
	}
	if err := stop(); err != nil {
		return err
	}
	return back()
}

// A right that is revoked on one server is used on another: by plain requests,
// an open event stream and open WebSockets, a thousand times. After the
// revoking call has returned it is never used.
func TestRevokedOnOneServerUsedOnAnother(t *testing.T) {
	url := storetest.Postgres(t)
	one, other := newReplica(t, url), newReplica(t, url)
	n := &notebook{}
	backend := httptest.NewServer(n)
	t.Cleanup(backend.Close)
	const tenants = 4
	var all []*tenant
	for i := range tenants {
		at, uses := one, other
		if i%2 == 1 {
			at, uses = other, one
		}
		all = append(all, newTenant(t, fmt.Sprintf("tenant%d", i), at, uses, n, backend.Listener.Addr().String()))
	}
	storetest.Concurrently(tenants, func(i int) {
		kinds := all[i].kinds()
		for k := range revocations / tenants {
			if err := all[i].round(kinds[k%len(kinds)]); err != nil {
				t.Errorf("round %d, kind %d: %v", k, k%len(kinds), err)
				return
			}
		}
	})
	if late := n.late.Load(); late != 0 {
		t.Errorf("%d messages reached a notebook after their sender's right had ended", late)
	}
	if !one.leaseValid() || !other.leaseValid() {
		t.Error("a server has lost its lease")
	}
}
