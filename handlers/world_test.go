package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/policies/notifications"
	"weir/policies/passkeys"
	"weir/pool"
	"weir/pool/authority"
	"weir/pool/broker"
	"weir/pool/pooltest"
	"weir/pool/projects"
	"weir/pool/providers"
	"weir/pool/requests"
	"weir/storage"
	"weir/storage/files"
	"weir/workspaces"
	"weir/workspaces/deployments"
	"weir/workspaces/proxy"
)

// world is the real App on a real store: an administrator, a project with a
// manager and a member, a stranger, one environment, and two simulated GPUs.
type world struct {
	testing.TB
	app                              *App
	store                            *store.Store
	log                              *bytes.Buffer
	admin, manager, member, stranger string // access tokens
	project, role, place             int64
	runner                           int64 // a role of service accounts, once made
	environment, device              int64
}

// nobodyEnters is the gate of a proxy through which no request goes.
type nobodyEnters struct{}

func (nobodyEnters) Redeem(context.Context, int64, string) (models.VisitCookie, error) {
	return models.VisitCookie{}, errors.New("nobody enters")
}

func (nobodyEnters) Leave(context.Context, int64, string) error { return errors.New("nobody enters") }

func (nobodyEnters) Admit(context.Context, int64, proxy.Credential) (proxy.Target, error) {
	return proxy.Target{}, errors.New("nobody enters")
}

// gpus is a machine with so many simulated GPUs.
type gpus int

func (n gpus) Devices(context.Context) (list []providers.DeviceReport, err error) {
	for i := range int(n) {
		list = append(list, providers.DeviceReport{UUID: "GPU-sim-" + strconv.Itoa(i), Index: i, Minor: i, Model: "NVIDIA H200",
			MemoryMiB: 143771, Simulated: true})
	}
	return list, nil
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldWith(t, func(*Config) {})
}

// newWorldWith is newWorld with other settings.
func newWorldWith(t testing.TB, set func(*Config)) *world {
	t.Helper()
	return newWorldOn(t, storetest.Open(t, "sqlite"), set)
}

// newWorldOn is newWorldWith on a store of the test's own.
func newWorldOn(t testing.TB, store *store.Store, set func(*Config)) *world {
	t.Helper()
	w := &world{TB: t, store: store, log: &bytes.Buffer{}}
	w.app = newApp(t, store, set, w.log)
	t.Cleanup(w.app.Close)
	if err := w.app.Providers.Enlist(t.Context(), providers.Host{Name: "here", Digest: providers.MachineDigest("here")}, gpus(2)); err != nil {
		t.Fatal(err)
	}
	w.populate()
	return w
}

// newApp is the App over a store; the caller closes it.
func newApp(t testing.TB, store *store.Store, set func(*Config), log *bytes.Buffer) *App {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(log, nil))
	access := must(policies.NewAccess())(t)
	verdicts := must(storage.NewVerdicts(store))(t)
	dirs := must(storage.New(t.TempDir(), 1000, 1000, verdicts))(t)
	machines := providers.New(store, access, nil)
	devices := pool.New(store, access, machines)
	capacity := projects.NewCapacity(store, access, devices, projects.Defaults{PerGPU: pooltest.PerGPU})
	projectService := projects.New(store, access, dirs, capacity)
	keys := must(authority.Open(filepath.Join(t.TempDir(), "authority.pem"), store.Now))(t)
	door := proxy.New(proxy.Config{Gate: nobodyEnters{}, AppsDomain: "localhost:8080", Logger: slog.New(slog.DiscardHandler), OnActivity: func(int64) {}, LeaseHeld: func() bool { return true },
		Page: func(w http.ResponseWriter, _ *http.Request, status int, _ *models.Error) { w.WriteHeader(status) }})
	t.Cleanup(door.Close)
	accounts := policies.NewAccounts(store, access)
	accounts.Key = must(policies.NewKey([]byte("shared"), policies.SecondFactorKey))(t)
	accounts.PasskeyKey = must(policies.NewKey([]byte("shared"), policies.PasskeyKey))(t)
	accounts.DeviceKey = must(policies.NewKey([]byte("shared"), policies.DeviceKey))(t)
	accounts.RelyingParty = must(passkeys.New(passkeyOrigin))(t)
	fileService := files.New(files.Config{Store: store, Accounts: accounts, Access: access, Verdicts: verdicts, Root: must(dirs.OpenRoot())(t), Logger: logger,
		Settings: files.Settings{TrashAge: time.Hour, VersionAge: time.Hour, Archive: files.DefaultArchiveLimits}})
	launches := workspaces.NewService(store, access, devices)
	launches.Models = fileService
	described := deployments.New(fileService, devices, must(deployments.OpenPresets("", nil))(t), store, access)
	launches.Served, launches.Actors = deployments.NewServed(described, t.TempDir()), accounts // no part of which is loaded
	c := Config{Deployments: described, Store: store, Accounts: accounts, Invitations: projects.NewInvitations(projectService, accounts),
		Notifications: &notifications.Service{Store: store, Access: access, Key: must(notifications.NewKey([]byte("shared")))(t)}, Projects: projectService,
		Capacity: capacity, Requests: requests.New(store, access, projectService, capacity), Pool: devices, Broker: broker.New(store, access, devices, broker.DefaultRules), Providers: machines,
		Enrollment: &providers.Enrollment{Store: store, Access: access, Authority: keys, CertificateLifetime: time.Hour, Every: time.Second},
		Catalog:    workspaces.NewCatalog(store, access),
		Workspaces: launches, Directories: dirs, Storage: storage.NewService(store, access, verdicts), Files: fileService, Proxy: door,
		Logger: logger, SessionLifetime: time.Hour, Version: "test", MetricsToken: metricsToken,
		Hosts: []string{"example.com", "weir.example.org"}}
	set(&c)
	app := NewApp(c)
	holdToContract(t, app)
	return app
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

const (
	plenty = `{"gpu_cores":200,"gpu_memory_mib":280000,"cpu_milli":16000,"memory_mib":65536,"storage_mib":1000000}`
	some   = `{"gpu_cores":100,"gpu_memory_mib":140000,"cpu_milli":4000,"memory_mib":16384,"storage_mib":100000}`
	beyond = `,"confirm":true,"reason":"a test"` // the pool's capacity
	slice  = `{"gpu_cores":10,"gpu_memory_mib":14000,"cpu_milli":1000,"memory_mib":4096,"storage_mib":1000}`
)

// populate makes everything through the API itself.
func (w *world) populate() {
	w.admin = w.account("root@example.org", true)
	w.manager, w.member, w.stranger = w.account("boss@example.org", false), w.account("ann@example.org", false), w.account("eve@example.org", false)
	w.project = w.create(w.admin, "/projects", `{"name":"vision","quota":`+plenty+`}`)
	at := "/projects/" + id(w.project)
	w.role = w.create(w.admin, at+"/roles", `{"name":"engineer","permission":"member","limit":`+some+`}`)
	boss := w.create(w.admin, at+"/roles", `{"name":"lead","permission":"manager","limit":`+slice+`}`)
	w.create(w.admin, at+"/members", `{"email":"boss@example.org","role_id":`+id(boss)+`}`)
	w.place = w.create(w.manager, at+"/members", `{"email":"ann@example.org","role_id":`+id(w.role)+`}`)
	w.environment = w.create(w.admin, "/environments", `{"name":"Python","language":"python","language_version":"3.12.1","versions":{"torch":"2.9.0"},"command":["/usr/bin/jupyter"],"default_path":"/lab"}`)
	w.device = 1
}

func (w *world) account(email string, admin bool) string {
	storetest.User(w, w.store, email, admin)
	return w.token(email)
}

func (w *world) token(email string) string {
	w.Helper()
	_, secret, err := w.app.Accounts.CreateTokenFor(w.Context(), policies.System("test"), email, policies.NewToken{Name: "test"})
	if err != nil {
		w.Fatal(err)
	}
	return secret
}

// signIn is a browser's session, as a Cookie header.
func (w *world) signIn(email, password string) string {
	w.Helper()
	form := url.Values{"email": {email}, "password": {password}}.Encode()
	r := httptest.NewRequestWithContext(w.Context(), http.MethodPost, "/signin", strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	w.app.ServeHTTP(rec, r)
	if rec.Code != http.StatusSeeOther {
		w.Fatalf("signing in: %d %v", rec.Code, rec.Header())
	}
	return w.cookieOf(rec.Header())
}

func id(n int64) string { return strconv.FormatInt(n, 10) }

// answer is what came back, its body read as JSON where it is some.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

// send asks the App; headers come in pairs.
func (w *world) send(token, method, path, body string, headers ...string) answer {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(context.Background(), method, apiPrefix+path, reader)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.app.ServeHTTP(rec, r)
	a := answer{status: rec.Code, header: rec.Header(), raw: rec.Body.String()}
	_ = json.Unmarshal(rec.Body.Bytes(), &a.body) // pages and empty answers are none
	return a
}

// want sends and fails the test on another status.
func (w *world) want(status int, token, method, path, body string, headers ...string) answer {
	w.Helper()
	a := w.send(token, method, path, body, headers...)
	if a.status != status {
		w.Fatalf("%s %s %s: %d %s, want %d; log: %s", method, path, body, a.status, a.raw, status, w.log)
	}
	return a
}

func (w *world) get(token, path string) answer {
	w.Helper()
	return w.want(200, token, "GET", path, "")
}

func (w *world) create(token, path, body string) int64 {
	w.Helper()
	a := w.want(201, token, "POST", path, body)
	n := int64(a.body["id"].(float64))
	if got, want := a.header.Get("Location"), apiPrefix+path+"/"+id(n); got != want {
		w.Errorf("POST %s: Location %q, want %q", path, got, want)
	}
	return n
}

// problem checks that an answer is a problem and returns its fields.
func (w *world) problem(a answer) map[string]string {
	w.Helper()
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		w.Errorf("Content-Type %q of %d %s", got, a.status, a.raw)
	}
	if a.body["type"] != "about:blank" || a.body["status"] != float64(a.status) || a.body["title"] != http.StatusText(a.status) ||
		a.body["detail"] == "" || a.body["kind"] == "" {
		w.Errorf("not a complete problem: %s", a.raw)
	}
	fields := map[string]string{}
	list, _ := a.body["errors"].([]any)
	for _, f := range list {
		field := f.(map[string]any)
		fields[field["field"].(string)], _ = field["reason"].(string)
	}
	return fields
}

// counts is how many rows each table has.
func (w *world) counts() map[string]int {
	w.Helper()
	db := must(w.store.SQL())(w)
	counts := map[string]int{}
	for _, table := range []string{"users", "access_tokens", "projects", "roles", "members", "environments", "devices", "workspaces",
		"shares", "workspace_events", "decisions", "one_time_tokens", "audit_entries", "authorizations", "agents", "quota_requests"} {
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n); err != nil {
			w.Fatal(err)
		}
		counts[table] = n
	}
	return counts
}

// running takes a launched workspace to where only a runtime would.
func (w *world) running(workspace int64) {
	w.Helper()
	storetest.InTx(w, w.store, func(q *store.Queries) error {
		row, err := q.Workspace(store.AllProjects, workspace)
		if err != nil {
			return err
		}
		from := row.State
		row.State = models.StateRunning
		return q.Transition(&row, from, models.Text{})
	})
}
