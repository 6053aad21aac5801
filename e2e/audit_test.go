package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/policies/openid/openidtest"
)

// ticker answers like a notebook; /ticks never ends, and says what time it is.
const ticker = `#!/usr/bin/python3
import http.server, os, signal, socketserver, sys, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        endless = self.path == "/ticks"
        self.send_header("Transfer-Encoding", "chunked") if endless else self.send_header("Content-Length", "0")
        self.end_headers()
        while endless:
            line = b"%.6f\n" % time.time()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            time.sleep(0.002)
` + onSocket

// auditee is a person with each way to get something: an access token, a session and, opened by
// the session, a notebook. The person is an administrator, too, and owns a service account.
type auditee struct {
	member
	project, role, workspace int64
	token                    int64 // id of the access token
	session                  *http.Client
	visits                   []notebook // through each server
	service, serviceToken    int64
	serviceSecret            string
}

// revocation is a call after which some ways are closed.
type revocation struct {
	name   string
	closes string // names of ways
	call   func(a *auditor, at *server, v auditee)
}

const everyWay = "token page events visit ticks people"

// revocations are those that people and administrators can make.
var revocations = []revocation{
	{"sign out", "page events visit ticks", func(a *auditor, at *server, v auditee) {
		a.does(at, v.session, "POST", "/signout", "")
	}},
	{"end another session", "page events visit ticks", func(a *auditor, at *server, v auditee) {
		for _, s := range list[id](at.api(v.api.token), "/me/sessions") {
			at.api(v.api.token).must("DELETE", fmt.Sprintf("/me/sessions/%d", s.ID), nil, nil)
		}
	}},
	{"change one's password", "page events visit ticks token people", func(a *auditor, at *server, v auditee) {
		other := a.signsIn(at, v.Email)
		a.does(at, other, "PUT", "/api/v1/me/password", fmt.Sprintf(`{"current":%q,"password":"another long password"}`, password))
	}},
	{"set a password", everyWay, func(a *auditor, at *server, v auditee) {
		a.admin(at).must("PUT", fmt.Sprintf("/users/%d/password", v.User), map[string]any{"password": "another long password"}, nil)
	}},
	{"weir admin reset-password", everyWay, func(a *auditor, at *server, v auditee) {
		if code, _, stderr := weir(a.t, "another long password\n", at.settings(), "admin", "reset-password", "--email", v.Email, "--password-stdin"); code != 0 {
			a.t.Fatalf("exit code %d: %s", code, stderr)
		}
	}},
	{"disable an account", everyWay, func(a *auditor, at *server, v auditee) {
		a.admin(at).must("PUT", fmt.Sprintf("/users/%d", v.User), map[string]any{"name": v.Name, "admin": true, "disabled": true}, nil)
	}},
	{"delete an access token", "token people", func(a *auditor, at *server, v auditee) {
		at.api(v.api.token).must("DELETE", fmt.Sprintf("/tokens/%d", v.token), nil, nil)
	}},
	{"delete the token of a service account", "service", func(a *auditor, at *server, v auditee) {
		a.admin(at).must("DELETE", fmt.Sprintf("/projects/%d/members/%d/tokens/%d", v.project, v.service, v.serviceToken), nil, nil)
	}},
	{"make an administrator a user", "people", func(a *auditor, at *server, v auditee) {
		a.admin(at).must("PUT", fmt.Sprintf("/users/%d", v.User), map[string]any{"name": v.Name, "admin": false, "disabled": false}, nil)
	}},
	{"remove a member", "visit ticks", func(a *auditor, at *server, v auditee) {
		a.admin(at).must("DELETE", fmt.Sprintf("/projects/%d/members/%d", v.project, v.ID), nil, nil)
	}},
	{"give a member a role of viewers", "visit ticks", func(a *auditor, at *server, v auditee) {
		a.admin(at).must("PUT", fmt.Sprintf("/projects/%d/members/%d", v.project, v.ID), map[string]any{"role_id": a.viewers}, nil)
	}},
	{"make a role one of viewers", "visit ticks", func(a *auditor, at *server, v auditee) {
		a.admin(at).must("PUT", fmt.Sprintf("/projects/%d/roles/%d", v.project, v.role), map[string]any{"name": v.Name, "permission": "viewer", "limit": share}, nil)
	}},
	{"stop a workspace", "visit ticks", func(a *auditor, at *server, v auditee) {
		at.api(v.api.token).must("POST", workspacePath(v.workspace)+"/stop", nil, nil)
	}},
}

// providerRevocations are those of a person who signs in with an identity provider.
var providerRevocations = []revocation{
	{"sign out of a provider's session", "page events visit ticks", revocations[0].call},
	{"delete an identity", "page events visit ticks", func(a *auditor, at *server, v auditee) {
		var person struct{ Identities []id }
		a.admin(at).must("GET", fmt.Sprintf("/users/%d", v.User), nil, &person)
		a.admin(at).must("DELETE", fmt.Sprintf("/users/%d/identities/%d", v.User, person.Identities[0].ID), nil, nil)
	}},
	{"disable an account of a provider", everyWay, func(a *auditor, at *server, v auditee) {
		a.admin(at).must("PUT", fmt.Sprintf("/users/%d", v.User), map[string]any{"name": v.Name, "admin": true, "disabled": true}, nil)
	}},
}

// auditedAtOnce is how many revocations are audited together.
const auditedAtOnce = 4

// auditor counts what people get after their right for it was taken away.
type auditor struct {
	t       *testing.T
	servers []*server
	env     int64
	project int64
	viewers int64 // id of the role
	people  int

	provider *openidtest.Provider // with which visitors sign in; nil: with a password
}

func newAuditor(t *testing.T, env int64, servers ...*server) *auditor {
	t.Helper()
	a := &auditor{t: t, servers: servers, env: env}
	team := servers[0].teamWithin("audited", share.times(200), share)
	a.project = team.Project
	var role id
	a.admin(servers[0]).must("POST", fmt.Sprintf("/projects/%d/roles", a.project), map[string]any{"name": "reader", "permission": "viewer", "limit": share}, &role)
	a.viewers = role.ID
	return a
}

func (a *auditor) admin(s *server) api { return s.api(s.admin()) }

// does makes a request of a browser that has to succeed.
func (a *auditor) does(s *server, client *http.Client, method, path, body string) {
	a.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Origin", s.url)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := client.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode >= 400 {
		a.t.Fatalf("%s %s: %s", method, path, res.Status)
	}
}

// way is how a visitor gets something of one of the servers.
type way struct {
	name    string
	client  *http.Client
	address string
	token   string
	endless bool
	arrived *arrivals // of lines that do not say when they were written
}

// ways are those of a visitor through a server.
func (a *auditor) ways(n int, v auditee) []way {
	s := a.servers[n]
	plain := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}, CheckRedirect: v.session.CheckRedirect}
	a.t.Cleanup(plain.CloseIdleConnections)
	portal := *v.session
	portal.Transport = s.browser().Transport // of this server
	events, arrived := portal, &arrivals{}
	events.Transport = arrived.transport(s.port)
	local := "http://127.0.0.1:" + strconv.Itoa(s.port)
	return []way{{name: "token", client: plain, address: fmt.Sprintf("%s/api/v1/projects/%d", local, v.project), token: v.api.token},
		{name: "people", client: plain, address: local + "/api/v1/users?limit=1", token: v.api.token},
		{name: "service", client: plain, address: fmt.Sprintf("%s/api/v1/projects/%d", local, v.project), token: v.serviceSecret},
		{name: "page", client: &portal, address: fmt.Sprintf("%s/projects/%d", s.url, v.project)},
		{name: "events", client: &events, address: s.url + "/events?topic=environments", endless: true, arrived: arrived},
		{name: "visit", client: v.visits[n].client, address: v.visits[n].origin + "/"},
		{name: "ticks", client: v.visits[n].client, address: v.visits[n].origin + "/ticks", endless: true}}
}

// use is what was got by a way.
type use struct {
	mu       sync.Mutex
	began    []time.Time // of requests that were answered
	received []time.Time // when lines were written or came, of a stream
	ended    bool        // a stream
	refused  int
}

// requests makes requests by a way, one after the other, until ctx ends.
func (w way) requests(ctx context.Context, u *use) {
	for ctx.Err() == nil {
		at := time.Now()
		answered := w.get(ctx, u)
		u.mu.Lock()
		if answered {
			u.began = append(u.began, at)
		} else {
			u.refused++
		}
		u.ended = u.ended || w.endless
		u.mu.Unlock()
		if !answered {
			time.Sleep(time.Millisecond) // the server may not be there
		}
	}
}

// get makes a request, reads its response to the end, and reports whether it was answered.
func (w way) get(ctx context.Context, u *use) bool {
	r, err := http.NewRequestWithContext(ctx, "GET", w.address, nil)
	if err != nil {
		return false
	}
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	res, err := w.client.Do(r)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		var at time.Time
		if stamp, err := strconv.ParseFloat(lines.Text(), 64); w.endless && err == nil {
			at = time.UnixMicro(int64(stamp * 1e6))
		} else if w.arrived != nil && strings.HasPrefix(lines.Text(), "data: environments") {
			at = w.arrived.at()
		} else {
			continue
		}
		u.mu.Lock()
		u.received = append(u.received, at)
		u.mu.Unlock()
	}
	return res.StatusCode == http.StatusOK
}

// progress is how many answers, lines and refusals there were.
func (u *use) progress() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.began) + len(u.received) + u.refused
}

// after counts what was got after a moment.
func (u *use) after(at time.Time) (answers, lines int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, t := range u.began {
		if t.After(at) {
			answers++
		}
	}
	for _, t := range u.received {
		if t.After(at) {
			lines++
		}
	}
	return answers, lines
}

// named is how a server is called.
func (a *auditor) named(s *server) string {
	return fmt.Sprintf("server %d", slices.Index(a.servers, s)+1)
}

// changes lets followers of the environments be told something.
func (a *auditor) changes(s *server) {
	a.t.Helper()
	var env id
	a.admin(s).must("POST", "/environments", map[string]any{"name": fmt.Sprintf("Change %d", time.Now().UnixNano()), "language": "none",
		"language_version": "1", "command": []string{"/bin/true"}}, &env)
	a.admin(s).must("DELETE", fmt.Sprintf("/environments/%d", env.ID), nil, nil)
}

// trial is a revocation with its visitor, and what that has got by each way.
type trial struct {
	revocation
	visitor  auditee
	uses     map[string]*use
	returned time.Time // when the call did
}

// audit makes revocations at a server while the visitor of each uses all ways, and prints what was got by
// those that it closes. during is what happens to the servers meanwhile: it calls what is revoked.
func (a *auditor) audit(revocations []revocation, at *server, during func(revoke func())) {
	a.t.Helper()
	var all []*trial
	for _, r := range revocations {
		all = append(all, &trial{revocation: r, visitor: a.visitor(), uses: map[string]*use{}})
	}
	ctx, stop := context.WithCancel(a.t.Context())
	defer stop()
	var working sync.WaitGroup
	for _, r := range all {
		a.enters(&r.visitor)
		a.begins(ctx, &working, r)
	}
	a.awaits(at, all, func(u *use, name string) int { // each way is open
		answers, lines := u.after(time.Time{})
		return answers + lines - 3
	})
	during(func() {
		var calling sync.WaitGroup // each has to wait for the other server on its own
		for _, r := range all {
			calling.Go(func() {
				r.call(a, at, r.visitor)
				r.returned = time.Now()
			})
		}
		calling.Wait()
	})
	before := map[*use]int{}
	for _, r := range all {
		for _, u := range r.uses {
			before[u] = u.progress()
		}
	}
	a.awaits(at, all, func(u *use, name string) int {
		if strings.HasPrefix(name, "events") || u.over() {
			return 0
		}
		return u.progress() - before[u] - 20
	})
	stop()
	working.Wait()
	for _, r := range all {
		a.reports(r, at)
	}
}

// begins has a visitor use all ways.
func (a *auditor) begins(ctx context.Context, working *sync.WaitGroup, r *trial) {
	for n := range a.servers {
		for _, w := range a.ways(n, r.visitor) {
			u := &use{}
			r.uses[w.name+" of "+a.named(a.servers[n])] = u
			for range 2 - map[bool]int{true: 1}[w.endless] {
				working.Go(func() { w.requests(ctx, u) })
			}
		}
	}
}

// awaits waits until enough was got by every way: spare, how much more it was, is not below 0.
func (a *auditor) awaits(at *server, all []*trial, spare func(u *use, name string) int) {
	a.t.Helper()
	eventually(a.t, ready, func() string {
		a.changes(at)
		for _, r := range all {
			for name, u := range r.uses {
				if n := spare(u, name); n < 0 {
					return fmt.Sprintf("%s: %s: %d are missing", r.name, name, -n)
				}
			}
		}
		return ""
	})
}

// reports prints what was got by the ways that a revocation closes, after it.
func (a *auditor) reports(r *trial, at *server) {
	a.t.Helper()
	answers, lines, checked := 0, 0, 0
	for name, u := range r.uses {
		kind, _, _ := strings.Cut(name, " ")
		n, m := u.after(r.returned)
		if !strings.Contains(" "+r.closes+" ", " "+kind+" ") {
			if n == 0 && kind != "events" && kind != "ticks" && strings.HasSuffix(name, a.named(at)) {
				a.t.Errorf("%s: %s is closed, too", r.name, name)
			}
			continue
		}
		if answers, lines, checked = answers+n, lines+m, checked+u.progress(); n+m > 0 {
			a.t.Errorf("%s: %s answered %d requests and sent %d lines after the call returned", r.name, name, n, m)
		}
	}
	a.t.Logf("%-40s %5d requests and lines; after the call returned: %d answered, %d lines", r.name, checked, answers, lines)
}

// over reports whether a stream has ended.
func (u *use) over() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ended
}

// Whatever takes a right away has done so when the call returns: no request that begins later is answered,
// and nothing more comes on what is open. make audit does the same on two servers.
func TestAudit(t *testing.T) {
	t.Parallel()
	provider := openidtest.New(t)
	s := newServer(t, options{gpus: "none", args: providerArgs(t, provider)})
	provider.SetRedirect(s.url + "/signin/oidc/callback")
	a := newAuditor(t, s.program(t, "ticker", ticker), s)
	for some := range slices.Chunk(revocations, auditedAtOnce) {
		a.audit(some, s, func(revoke func()) { revoke() })
	}
	a.provider = provider
	a.audit(providerRevocations, s, func(revoke func()) { revoke() })
}
