package handlers

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/models/store"
	"weir/models/store/storetest"
)

// uncached is an App on another store over the same database, with the same stopped
// clock. It has no lease, so it caches nothing.
func uncached(t *testing.T, of *App) *App {
	t.Helper()
	var number, name, file string
	if err := must(of.Store.SQL())(t).QueryRow("PRAGMA database_list").Scan(&number, &name, &file); err != nil {
		t.Fatal(err)
	}
	store, err := store.Open(t.Context(), "", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	store.Clock = func() time.Time { return of.Store.Clock() }
	app := newApp(t, store, func(*Config) {}, &bytes.Buffer{})
	t.Cleanup(app.Close)
	return app
}

// stopClocks makes nothing expire.
func stopClocks(s *store.Store) {
	now, elapsed := s.Now(), s.Elapsed()
	s.Clock, s.Elapsed = func() time.Time { return now }, func() time.Duration { return elapsed }
}

var eventCursor = regexp.MustCompile(` data-since="[^"]*"`)

func readPage(t *testing.T, app *App, token, path, language string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept-Language", language)
	rec := httptest.NewRecorder()
	app.ServeHTTP(rec, r)
	return fmt.Sprint(rec.Code, " ", rec.Header().Get("Location"), "\n", eventCursor.ReplaceAllString(rec.Body.String(), ""))
}

// Whoever read it before, and whatever has changed since, each actor sees the page of
// the pool that would be rendered for that actor alone.
func TestSharedPoolPageIsTheActorsOwn(t *testing.T) {
	w := newWorld(t)
	stopClocks(w.store)
	fresh := uncached(t, w.app)
	workspace := w.create(w.member, "/workspaces", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`)
	other := w.create(w.admin, "/projects", `{"name":"speech","quota":`+some+beyond+`}`)
	role := w.create(w.admin, "/projects/"+id(other)+"/roles", `{"name":"reader","permission":"viewer","limit":`+slice+`}`)
	random := rand.New(rand.NewPCG(1, 2))
	changes := []func(){
		func() {},
		func() { w.running(workspace) },
		func() {
			w.create(w.admin, "/projects/"+id(other)+"/members", `{"email":"eve@example.org","role_id":`+id(role)+`}`)
		},
		func() {
			storetest.InTx(t, w.store, func(q *store.Queries) error {
				ann, err := q.UserByEmail("ann@example.org")
				if err != nil {
					return err
				}
				ann.Name = "Anna"
				return q.UpdateUser(&ann)
			})
		},
	}
	for i, change := range changes {
		change()
		tokens := []string{w.admin, w.manager, w.member, w.stranger, w.admin, w.manager, w.member, w.stranger}
		random.Shuffle(len(tokens), func(i, j int) { tokens[i], tokens[j] = tokens[j], tokens[i] })
		for _, token := range tokens {
			for _, language := range []string{"en", "zh"} {
				if got, want := readPage(t, w.app, token, "/pool", language), readPage(t, fresh, token, "/pool", language); got != want {
					t.Fatalf("after change %d an actor sees\n%s\nand not\n%s", i, got, want)
				}
			}
		}
	}
}

// A page is cached until a right of its reader may have changed, also where no topic
// tells of the change.
func TestCachedPagesEndWithRevocation(t *testing.T) {
	w := newWorld(t)
	stopClocks(w.store)
	page := "/projects/" + id(w.project)
	names := func(name string) bool { return strings.Contains(readPage(t, w.app, w.member, page, "en"), name) }
	if !names("vision") {
		t.Fatal("the page does not name its project")
	}
	ann := must(w.store.Read(t.Context()).UserByEmail("ann@example.org"))(t)
	for name, revoke := range map[string]func(*store.Queries){
		"renamed-by-hand": func(q *store.Queries) { q.Revoke("project", w.project) },
		"by-hand-again":   func(q *store.Queries) { q.Revoke("user", ann.ID) },
	} {
		if _, err := must(w.store.SQL())(t).Exec("UPDATE projects SET name = '" + name + "'"); err != nil {
			t.Fatal(err)
		}
		if names(name) {
			t.Fatal("the page is not cached")
		}
		storetest.InTx(t, w.store, func(q *store.Queries) error { revoke(q); return nil })
		if !names(name) {
			t.Errorf("%s: the page is cached after a revocation", name)
		}
	}
}

// The pool is read once for all actors with the same rights, until it changes; for one
// whose own things are marked there, again.
func TestPoolPageIsSharedByRights(t *testing.T) {
	w := newWorld(t)
	stopClocks(w.store)
	var tokens []string
	for _, email := range []string{"one@example.org", "two@example.org", "three@example.org"} {
		tokens = append(tokens, w.account(email, false))
	}
	var reads atomic.Int64
	err := w.store.Watch(func(s store.Statement) {
		if strings.Contains(s.SQL, "decisions.*") {
			reads.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	asks := func(token string) int64 {
		reads.Store(0)
		readPage(t, w.app, token, "/pool", "en")
		return reads.Load()
	}
	if asks(tokens[0]) == 0 || asks(tokens[1]) != 0 || asks(tokens[0]) != 0 {
		t.Error("the pool is not read once for two actors without projects")
	}
	if asks(w.member) == 0 {
		t.Error("a member of a project sees the page of somebody without projects")
	}
	storetest.InTx(t, w.store, func(q *store.Queries) error { q.Touch("pool"); return nil })
	if asks(tokens[2]) == 0 || asks(tokens[0]) != 0 {
		t.Error("the pool is not read once after a change")
	}
	workspace := w.create(w.member, "/workspaces", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`)
	w.running(workspace)
	if asks(w.manager) == 0 || asks(w.member) == 0 {
		t.Error("a manager and the member whose share is marked see the same page")
	}
}
