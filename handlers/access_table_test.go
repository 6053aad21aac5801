package handlers

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/web"
)

var writeAccess = flag.Bool("write-access", false, "write testdata/access.txt anew, to be read and judged")

const accessTable = "testdata/access.txt"

// about says what ids a route has. A route of a project's thing is asked
// about one's own and about a foreign one, and with a foreign thing under
// one's own project.
func about(path string) (named string, wheres []string) {
	p := strings.TrimPrefix(path, apiPrefix)
	own := []string{"own", "foreign"}
	for _, c := range []struct {
		prefix, with string
		wheres       []string
	}{
		{"/projects/:id/roles/:role", "/projects/$project/roles/$role", append(own, "mixed")},
		{"/projects/:id/members/:member/handover", "/projects/$project/members/$leaver/handover", append(own, "mixed")},
		{"/projects/:id/members/:member/tokens/:token", "/projects/$project/members/$service/tokens/$robotkey", append(own, "mixed")},
		{"/projects/:id/members/:member/tokens", "/projects/$project/members/$service/tokens", append(own, "mixed")},
		{"/projects/:id/members/:member", "/projects/$project/members/$member", append(own, "mixed")},
		{"/projects/:id/split-presets/:preset", "/projects/$project/split-presets/$preset", append(own, "mixed")},
		{"/projects/:id/files/rules/:rule", "/projects/$project/files/rules/1", own},
		{"/projects/:id/files/uploads/:upload", "/projects/$project/files/uploads/1", own},
		{"/projects/:id/files/trash/:item", "/projects/$project/files/trash/1", own},
		{"/projects/:id/files/versions/:version", "/projects/$project/files/versions/1", own},
		{"/projects/:id", "/projects/$project", own},
		{"/invitations/:id", "/invitations/$invitation", own},
		{"/workspaces/:id", "/workspaces/$workspace", own},
		{"/requests/:id", "/requests/$request", own},
		{"/reservations/:id", "/reservations/$reservation", own},
		{"/runs/:id", "/runs/$run", own},
		{"/deployments/:id", "/deployments/$deployment", own},
		{"/notifications/:id", "/notifications/$notification", own},
		{"/tokens/:id", "/tokens/$token", own},
		{"/me/passkeys/:id", "/me/passkeys/$passkey", own},
		{"/account/passkeys/:id", "/account/passkeys/$passkey", own},
		{"/me/sessions/:id", "/me/sessions/$session", own},
		{"/account/sessions/:id", "/account/sessions/$session", own},
		{"/people/:id/identities/:identity", "/people/$tom/identities/$identity", []string{"any"}},
		{"/users/:id/identities/:identity", "/users/$tom/identities/$identity", []string{"any"}},
		{"/people/:id", "/people/$user", own},
		{"/users/:id", "/users/$user", own},
		{"/pool/providers/:id", "/pool/providers/$provider", own},
		{"/pool/devices/:id", "/pool/devices/$device", own},
		{"/environments/:id", "/environments/$environment", []string{"any"}},
		{"/departments/:id", "/departments/$department", []string{"any"}},
		{"/webhooks/:id", "/webhooks/$webhook", []string{"any"}},
		{"/deliveries/:id", "/deliveries/$delivery", []string{"any"}},
		{"/curators/:id", "/curators/$curator", []string{"any"}},
		{"/docs/*", "/docs/how-to/tls", []string{"any"}},
	} {
		if rest, ok := strings.CutPrefix(p, c.prefix); ok && (rest == "" || rest[0] == '/' || rest[0] == '.') {
			return strings.TrimSuffix(path, p) + c.with + rest, c.wheres
		}
	}
	return path, []string{"any"}
}

// body is what is sent to a route, whatever the method; forms for pages.
func body(path string) string {
	if rest, ok := strings.CutPrefix(path, apiPrefix); ok {
		return apiBodies[rest]
	}
	return pageForms[path]
}

// queries are what a request says in its query.
var queries = map[string]string{
	"/launch": "project_id=$project", "/runs/new": "project_id=$project", "/access": "user_id=$user&project_id=$project&right=role:write", apiPrefix + "/access": "user_id=$user&project_id=$project&object=role&act=write",
	"/reservations/calendar": "project_id=$project", apiPrefix + "/reservations/calendar": "project_id=$project",
	"/audit": "project_id=$project", apiPrefix + "/audit": "project_id=$project", apiPrefix + "/audit.csv": "project_id=$project",
	apiPrefix + "/projects/:id/files/archive": "path=/notebook/$project/project_model", apiPrefix + "/projects/:id/files/stat": "path=/notebook/$project/project_model",
	"/projects/:id/files": "path=/&id=$project", "/projects/:id/files/access": "path=/notebook/$project/project_model", "/projects/:id/files/move": "item=/notebook/$project/project_model",
	apiPrefix + "/projects/:id/files/environment": "path=/notebook/$project/project_model", apiPrefix + "/projects/:id/files/model": "path=/notebook/$project/project_model",
	"/projects/:id/files/model": "path=/notebook/$project/project_model",
	"/projects/:id/files/graph": "path=/notebook/$project/project_model/tiny/vision.onnx&cpus=8", apiPrefix + "/projects/:id/files/graph": "path=/notebook/$project/project_model/tiny/vision.onnx&cpus=8",
	"/search": "q=vision", apiPrefix + "/search": "q=vision",
	"/requests/new": "kind=role&project_id=$project", "/events": "topic=project:$project",
}

// isPage tells whether a route is a page for a browser.
func isPage(path string) bool { return !strings.HasPrefix(path, apiPrefix) }

// asks is one line of the table.
type asks struct{ method, path, where string }

func (a asks) String() string { return fmt.Sprintf("%-6s %-62s %-7s", a.method, a.path, a.where) }

// every is what the routes of the App ask for.
func every(app *App) (list []asks) {
	for _, r := range app.echo.Routes() {
		if r.Method == "echo_route_not_found" {
			continue
		}
		_, wheres := about(r.Path)
		if r.Method == http.MethodGet && strings.Contains(queries[r.Path], "$project") ||
			r.Method != http.MethodGet && strings.Contains(body(r.Path), "$project") {
			wheres = []string{"own", "foreign"}
		}
		for _, where := range wheres {
			list = append(list, asks{r.Method, r.Path, where})
		}
	}
	slices.SortFunc(list, func(a, b asks) int {
		return strings.Compare(a.path+" "+a.method+" "+a.where, b.path+" "+b.method+" "+b.where)
	})
	return slices.Compact(list)
}

// request is what a persona sends for a line.
func (s *scene) request(t *testing.T, a asks, persona string) *http.Request {
	path, _ := about(a.path)
	path = strings.Replace(path, "/static/*", web.Asset("weir.css"), 1)
	if q := queries[a.path]; q != "" && a.method == http.MethodGet {
		path += "?" + q
	}
	sent := ""
	if a.method != http.MethodGet && a.method != http.MethodDelete {
		sent = s.told(body(a.path), a.where, persona)
	}
	kind := "application/json"
	if isPage(a.path) {
		kind = "application/x-www-form-urlencoded"
		if strings.HasPrefix(sent, "{") {
			t.Fatalf("%s: a form is not JSON", a.path)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), a.method, s.told(path, a.where, persona), strings.NewReader(sent))
	if sent != "" {
		r.Header.Set("Content-Type", kind)
	}
	if token := s.tokens[persona]; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// brief ends a request when the answer has begun: a stream has no end.
type brief struct {
	*httptest.ResponseRecorder
	stop context.CancelFunc
}

func (b brief) Flush() { b.stop() }

// serveBriefly is the response to a request, of a stream its beginning.
func serveBriefly(app *App, r *http.Request) *httptest.ResponseRecorder {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	rec := httptest.NewRecorder()
	app.ServeHTTP(brief{rec, stop}, r.WithContext(ctx))
	return rec
}

// resultOf is what becomes of a request: ok, also when something else than
// rights is in the way; sign-in, which is where a browser is sent; or the
// status that refuses.
func resultOf(t *testing.T, app *App, r *http.Request) (said string, changed bool) {
	return readResult(t, r, serveBriefly(app, r))
}

func readResult(t *testing.T, r *http.Request, rec *httptest.ResponseRecorder) (said string, changed bool) {
	to, _ := url.Parse(rec.Header().Get("Location"))
	switch {
	case rec.Code == 303 && to.Path == "/signin" && to.Query().Has("next"):
		return "sign-in", false
	case rec.Code < 400:
		return "ok", r.Method != http.MethodGet
	case rec.Code == 409, rec.Code == 412, rec.Code == 422:
		return "ok", false
	case rec.Code == 401, rec.Code == 403, rec.Code == 404:
		return strconv.Itoa(rec.Code), false
	}
	t.Errorf("%s %s: %d %.300s", r.Method, r.URL, rec.Code, rec.Body)
	return strconv.Itoa(rec.Code), true
}

// measured is the line as it is now, a result for each persona.
func (s *scene) measured(t *testing.T, stage *stage, a asks) (line []string) {
	for _, persona := range personas {
		said, changed := resultOf(t, stage.app(t), s.request(t, a, persona))
		line = append(line, said)
		if changed {
			stage.clear()
		}
	}
	return line
}

// stage has an App on the scene as it was set up, until something was changed.
type stage struct {
	scene *scene
	now   *App
	done  func()
}

func (g *stage) app(t *testing.T) *App {
	if g.now == nil {
		g.now, g.done = g.scene.play(t)
	}
	return g.now
}

func (g *stage) clear() {
	if g.now != nil {
		g.done()
		g.now = nil
	}
}

// readTable reads the table: what is asked for, and the results.
func readTable(t *testing.T) map[asks][]string {
	t.Helper()
	raw, err := os.ReadFile(accessTable)
	if err != nil {
		t.Fatal(err)
	}
	table := map[asks][]string{}
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(f) != 3+len(personas) {
			t.Fatalf("%q has %d columns, not %d", line, len(f), 3+len(personas))
		}
		table[asks{f[0], f[1], f[2]}] = f[3:]
	}
	return table
}

func lineOf(a asks, results []string) string {
	var b strings.Builder
	b.WriteString(a.String())
	for i, v := range results {
		fmt.Fprintf(&b, " %-*s", max(len(personas[i]), 7), v)
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// Every route answers every persona, about its own and about foreign things,
// as the table says. A route that is new needs its lines there: run this test
// with -write-access, and judge each result that it adds.
func TestAccessTable(t *testing.T) {
	s := newScene(t)
	all := every(s.app)
	g := &stage{scene: s}
	defer g.clear()
	if *writeAccess {
		s.writeTable(t, g, all)
		return
	}
	table := readTable(t)
	for _, a := range all {
		want, listed := table[a]
		if !listed {
			t.Errorf("no line says who may %s", a)
			continue
		}
		delete(table, a)
		got := s.measured(t, g, a)
		for i, persona := range personas {
			if got[i] != want[i] {
				t.Errorf("%s: %s gets %s, the table says %s", a, persona, got[i], want[i])
			}
			if leaks(a, persona, want[i]) {
				t.Errorf("%s: the table lets %s know of what is foreign (%s)", a, persona, want[i])
			}
		}
	}
	for a := range table {
		t.Errorf("there is no route for the line %s", a)
	}
}

// leaks tells whether a result says that something foreign is there. To all
// that have no platform role it is not. Under one's own project it is to
// nobody; there a role that may do nothing of the kind is told so before
// anything is looked for.
func leaks(a asks, persona, result string) bool {
	switch {
	case persona == "nobody" || public(a):
		return false
	case a.where == "mixed":
		return result != "404" && result != "403"
	case a.where == "foreign":
		return result != "404" && persona != "auditor" && persona != "administrator"
	}
	return false
}

// public is what belongs to no project: the pool is seen by all who have
// signed in, and people can be asked about where they are known.
func public(a asks) bool {
	p := strings.TrimPrefix(a.path, apiPrefix)
	return strings.HasPrefix(p, "/pool/") || strings.HasPrefix(p, "/people/") || strings.HasPrefix(p, "/users/")
}

func (s *scene) writeTable(t *testing.T, g *stage, all []asks) {
	var b strings.Builder
	b.WriteString(`# Who may do what. For each route, and what its ids are of: the answer to each
# persona. "own" is a thing of the project vision, in which the persona has the
# role that it is named by, or of the persona itself; "foreign" one of another
# project or person; "mixed" a foreign thing under the own project; "any" what
# belongs to the platform, or has no id. ok: not refused for lack of rights;
# sign-in: sent there; the others are statuses. The workspace, the request and
# the provider that are "own" are the member's.
`)
	b.WriteString("# " + strings.TrimSpace(strings.TrimPrefix(lineOf(asks{"method", "path", "of"}, personas), "# ")) + "\n")
	for _, a := range all {
		b.WriteString(lineOf(a, s.measured(t, g, a)))
	}
	if err := os.WriteFile(accessTable, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
