package handlers

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/models/store/storetest"
)

// troubles are what a page shows only when somebody has made an error.
var troubles = regexp.MustCompile(`<[^>]*(?:class="(?:error|flash bad)"|role="alert"|aria-invalid="true")[^>]*>[^<]*`)

// redirecting are routes that lead elsewhere.
var redirecting = []string{"/favicon.ico", "/signin", "/signin/passkey", "/signin/second-factor", "/signin/second-factor/setup", "/signin/second-factor/confirm",
	"/account/second-factor/confirm", "/notifications/:id", "/workspaces/:id/open"}

// opens checks that a page opens without errors, or is refused as the access table says.
func opens(t *testing.T, app *App, route string, r *http.Request, persona string, refusals ...string) {
	t.Helper()
	rec := serveBriefly(app, r)
	status := strconv.Itoa(rec.Code)
	if route == "/metrics" { // for a scraper, with its token
		refusals = append(slices.Clone(refusals), "401")
	}
	switch {
	case rec.Code >= http.StatusBadRequest && !slices.Contains(refusals, status):
		t.Errorf("%s gets %s of %s, the table says %v", persona, status, r.URL, refusals)
	case rec.Code >= http.StatusMultipleChoices && rec.Code < http.StatusBadRequest && !slices.Contains(redirecting, route):
		t.Errorf("%s is sent from %s to %s", persona, r.URL, rec.Header().Get("Location"))
	}
	if rec.Code == http.StatusOK && strings.HasPrefix(rec.Header().Get("Content-Type"), "text/html") {
		for _, trouble := range troubles.FindAllString(rec.Body.String(), -1) {
			t.Errorf("%s opens %s with an error that nobody has caused: %s", persona, r.URL, trouble)
		}
	}
}

// pagesToOpen are all that a browser can get, but the stream of events.
func pagesToOpen(app *App) (list []asks) {
	for _, a := range every(app) {
		if a.method == http.MethodGet && isPage(a.path) && a.path != eventsPath && (a.where == "own" || a.where == "any") {
			list = append(list, a)
		}
	}
	return list
}

// visitors are the roles for which pages are opened: an engineer, a manager and the
// platform's.
var visitors = []string{"member", "manager", "administrator", "auditor"}

func TestPagesOpenWithoutErrors(t *testing.T) {
	s := newScene(t)
	table := readTable(t)
	app, done := s.play(t)
	defer done()
	pages := pagesToOpen(app)
	if len(pages) < 50 {
		t.Fatalf("only %d pages", len(pages))
	}
	for _, a := range pages {
		for _, persona := range visitors {
			opens(t, app, a.path, s.request(t, a, persona), persona, table[a][slices.Index(personas, persona)])
		}
	}
}

// Where nothing is there yet, the pages that name nothing open, too.
func TestPagesOpenOnAnEmptyInstallation(t *testing.T) {
	db := storetest.Open(t, "sqlite")
	w := &world{TB: t, store: db, log: &bytes.Buffer{}}
	w.app = newApp(t, db, func(*Config) {}, w.log)
	t.Cleanup(w.app.Close)
	tokens := map[string]string{"administrator": w.account("root@example.org", true), "auditor": w.account("audrey@example.org", false),
		"stranger": w.account("eve@example.org", false)}
	if _, err := must(db.SQL())(t).Exec("UPDATE users SET auditor = TRUE WHERE email = 'audrey@example.org'"); err != nil {
		t.Fatal(err)
	}
	table := readTable(t)
	opened := map[string]bool{}
	for _, a := range pagesToOpen(w.app) {
		if strings.ContainsAny(a.path, ":*") {
			continue
		}
		for persona, token := range tokens {
			r := httptest.NewRequestWithContext(t.Context(), a.method, a.path, nil)
			r.Header.Set("Authorization", "Bearer "+token)
			refusals := []string{"403", "404"} // of what asks for a project, to those who have none
			if a.where == "any" || persona != "stranger" {
				refusals = table[a][slices.Index(personas, persona):][:1]
			}
			opens(t, w.app, a.path, r, persona, refusals...)
			opened[a.path] = true
		}
	}
	if len(opened) < 20 {
		t.Errorf("only %d pages", len(opened))
	}
}
