package proxy

import (
	"context"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/models"
)

const (
	domain      = "localhost:8080"
	own         = "http://ws-12.localhost:8080"
	sibling     = "http://ws-13.localhost:8080"
	portal      = "http://localhost:8080"
	secret      = "notebook-secret"
	ownerCookie = "visit-of-the-owner"
	ownerBearer = "weir_token-of-the-owner"
)

// patience is how long a test waits for what has to happen.
const patience = 2 * time.Minute

// gate is a Gate over maps, as the service is one over the database.
type gate struct {
	mu      sync.Mutex
	opening map[string]models.VisitCookie // single use
	good    map[Credential]bool
	targets map[int64]Target
	refusal map[int64]error // of the owner's own workspaces
	asked   int
}

func (g *gate) Redeem(_ context.Context, workspace int64, token string) (models.VisitCookie, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	visit, ok := g.opening[token]
	if !ok || workspace != 12 {
		return models.VisitCookie{}, &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("token %s was used", token)}
	}
	delete(g.opening, token)
	g.good[Credential{Cookie: visit.Secret}] = true
	return visit, nil
}

func (g *gate) Leave(_ context.Context, workspace int64, cookie string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if workspace == 12 {
		delete(g.good, Credential{Cookie: cookie})
	}
	return nil
}

func (g *gate) Admit(_ context.Context, workspace int64, c Credential) (Target, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	if !g.good[c] {
		return Target{}, &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("Who are you?")}
	}
	if err := g.refusal[workspace]; err != nil {
		return Target{}, err
	}
	target, ok := g.targets[workspace]
	if !ok {
		return Target{}, &models.Error{Kind: models.KindNotFound, Message: models.Say("workspace %d of someone", workspace)}
	}
	return target, nil
}

func (g *gate) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// world is a proxy before a backend on a Unix socket, and a browser.
type world struct {
	*gate
	proxy  *Proxy
	server *httptest.Server
	client *http.Client // finds every host at the proxy, follows no redirect
}

func newWorld(t testing.TB, backend http.Handler, adjust ...func(*Config)) *world {
	t.Helper()
	socket := serveUnix(t, backend)
	return newWorldAt(t, models.Endpoint{Network: "unix", Address: socket}, adjust...)
}

func newWorldAt(t testing.TB, endpoint models.Endpoint, adjust ...func(*Config)) *world {
	t.Helper()
	g := &gate{
		opening: map[string]models.VisitCookie{},
		good:    map[Credential]bool{{Cookie: ownerCookie}: true, {Bearer: ownerBearer}: true},
		targets: map[int64]Target{12: {Workspace: 12, Generation: 1, Endpoint: endpoint, Token: secret}},
		refusal: map[int64]error{},
	}
	cfg := Config{Page: plainPage, Logger: slog.New(slog.DiscardHandler), OnActivity: func(int64) {}, LeaseHeld: func() bool { return true },
		Gate: g, AppsDomain: domain, PortalCookies: []string{"weir_session"},
		PortalURL: portal,
	}
	for _, f := range adjust {
		f(&cfg)
	}
	p := New(cfg)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(p.Close)
	return &world{g, p, server, clientOf("tcp", server.Listener.Addr().String())}
}

func serveUnix(t testing.TB, h http.Handler) (socket string) {
	t.Helper()
	socket = filepath.Join(shortDir(t), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h}}
	server.Start()
	t.Cleanup(server.Close)
	return socket
}

// shortDir is a temporary directory with room left for a socket's name.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func clientOf(network, address string) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, address)
			},
			DisableCompression:  true,
			MaxIdleConnsPerHost: 64,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// request makes one to workspace 12; headers are "Name: value".
func request(t testing.TB, method, target string, body io.Reader, headers ...string) *http.Request {
	t.Helper()
	if strings.HasPrefix(target, "/") {
		target = own + target
	}
	r, err := http.NewRequest(method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	return r
}

const (
	asOwner   = "Cookie: weir_visit=" + ownerCookie
	asProgram = "Authorization: Bearer " + ownerBearer
	asBrowser = "Accept: text/html,*/*"
)

// do returns the answer with its body already read.
func (w *world) do(t testing.TB, r *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })

// of is everything in flight to a workspace.
func (fs *flows) of(workspace int64) (out []*flow) {
	for _, f := range fs.all() {
		if f.workspace == workspace {
			out = append(out, f)
		}
	}
	return out
}

// Revoke cuts everything in flight to a workspace, as Revoked does to what the
// gate refuses.
func (p *Proxy) Revoke(workspace int64) {
	for _, f := range p.flows.of(workspace) {
		f.cut()
	}
}

// plainPage is an error page as the portal would render one.
func plainPage(w http.ResponseWriter, _ *http.Request, status int, e *models.Error) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\"><title>%[1]s</title><p>%[2]s</p></html>\n", http.StatusText(status), html.EscapeString(e.Message.String()))
}
