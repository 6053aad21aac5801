package handlers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/migrations"
	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/providers"
)

// cachedPages are the pages whose content is cached, of a project.
func cachedPages(project int64) []string {
	return []string{"/", "/pool", "/projects/" + id(project), "/launch?project_id=" + id(project)}
}

// comparePages reads pages of an App that has cached them, before and after a change, and
// compares them with those of an App that caches nothing. It returns how many changed.
func comparePages(t *testing.T, app, fresh *App, tokens, pages []string, change func()) (changed int) {
	t.Helper()
	before := map[string]string{}
	read := func(of *App, token, page string) string { return readPage(t, of, token, page, "en") }
	for _, token := range tokens {
		for _, page := range pages {
			before[token+page] = read(app, token, page)
		}
	}
	change()
	for _, token := range tokens {
		for _, page := range pages {
			got, want := read(app, token, page), read(fresh, token, page)
			if got != want {
				t.Errorf("an actor sees\n%s\nand not\n%s", got, want)
			}
			if want != before[token+page] {
				changed++
			}
		}
	}
	return changed
}

// Whatever is changed by a call, the next request for a cached page shows it.
func TestCachedPagesFollowEveryCall(t *testing.T) {
	if testing.Short() {
		t.Skip("makes every call")
	}
	s := newScene(t)
	changes, seen := 0, 0
	for _, a := range every(s.app) {
		if isPage(a.path) || a.method == http.MethodGet || a.where == "foreign" || a.where == "mixed" {
			continue
		}
		changed := false
		for _, persona := range []string{"administrator", "member"} {
			if changed {
				break
			}
			t.Run(strings.Join([]string{a.method, a.path, persona}, " "), func(t *testing.T) {
				app, done := s.play(t)
				defer done()
				stopClocks(app.Store)
				tokens := []string{s.tokens["member"], s.tokens["manager"], s.tokens["administrator"]}
				pages := append(cachedPages(s.project), "/projects/"+id(s.ids["secret project"]))
				said := ""
				n := comparePages(t, app, uncached(t, app), tokens, pages, func() {
					r := s.request(t, a, persona)
					r.Header.Set("If-Match", "*")
					said, changed = resultOf(t, app, r)
				})
				if changed {
					changes++
				}
				if n > 0 {
					seen++
				}
				if n > 0 && !changed {
					t.Errorf("%d pages change although the call says %s", n, said)
				}
			})
		}
	}
	if changes < 40 || seen < 20 {
		t.Errorf("%d calls change something, and %d of them pages", changes, seen)
	}
}

// The same, for what happens without a call.
func TestCachedPagesFollowEvents(t *testing.T) {
	w := newWorld(t)
	stopClocks(w.store)
	fresh := uncached(t, w.app)
	workspace := w.create(w.member, "/workspaces", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`)
	tx := func(fn func(*store.Queries) error) func() { return func() { storetest.InTx(t, w.store, fn) } }
	for name, change := range map[string]func(){
		"a workspace runs": func() { w.running(workspace) },
		"a machine has more GPUs": func() {
			if err := w.app.Providers.Enlist(t.Context(), providers.Host{Name: "here", Digest: providers.MachineDigest("here")}, gpus(4)); err != nil {
				t.Fatal(err)
			}
		},
		"an account has another name": tx(func(q *store.Queries) error {
			ann, err := q.UserByEmail("ann@example.org")
			if err != nil {
				return err
			}
			ann.Name = "Anna"
			return q.UpdateUser(&ann)
		}),
		"an environment has another name": tx(func(q *store.Queries) error {
			e, err := q.Environment(w.environment)
			if err != nil {
				return err
			}
			e.Name = "Python, renamed"
			return q.UpdateEnvironment(&e)
		}),
	} {
		if comparePages(t, w.app, fresh, []string{w.member, w.manager, w.admin}, cachedPages(w.project), change) == 0 {
			t.Errorf("%s: no page shows it", name)
		}
	}
}

// A page is cached for the rest of a second at most, so dates that end with one end
// there too.
func TestCachedPagesFollowTime(t *testing.T) {
	w := newWorld(t)
	stopClocks(w.store)
	now := w.store.Now()
	w.store.Clock = func() time.Time { return now }
	fresh := uncached(t, w.app)
	tokens := []string{w.member, w.manager, w.admin}
	ends := w.store.Now().Add(36 * time.Hour).Truncate(24 * time.Hour)
	w.want(200, w.admin, "PUT", "/projects/"+id(w.project), `{"name":"vision","quota":`+plenty+`,"ends_at":"`+ends.Format(time.RFC3339)+`"}`, "If-Match", "*")
	w.want(200, w.admin, "PUT", "/projects/"+id(w.project)+"/members/"+id(w.place),
		`{"role_id":`+id(w.role)+`,"until":"`+ends.Add(-time.Hour).Format(time.RFC3339)+`"}`, "If-Match", "*")
	for _, end := range []time.Time{ends.Add(-time.Hour), ends} {
		now = end.Add(-time.Microsecond)
		if comparePages(t, w.app, fresh, tokens, cachedPages(w.project), func() {}) != 0 {
			t.Error("a page changes while nothing does")
		}
		if comparePages(t, w.app, fresh, tokens, cachedPages(w.project), func() { now = end }) == 0 {
			t.Errorf("no page shows that %s has passed", end)
		}
	}
}

// A page that is read again is not built again; what was typed into a form, and what is
// shown once, is not cached at all.
func TestWhatIsCached(t *testing.T) {
	w := newWorld(t)
	stopClocks(w.store)
	var reads atomic.Int64
	if err := w.store.Watch(func(store.Statement) { reads.Add(1) }); err != nil {
		t.Fatal(err)
	}
	again := func(page string) int64 {
		readPage(t, w.app, w.member, page, "en")
		reads.Store(0)
		readPage(t, w.app, w.member, page, "en")
		return reads.Load()
	}
	for _, page := range cachedPages(w.project) {
		if n := again(page); n != 0 {
			t.Errorf("%s needs %d statements again", page, n)
		}
	}
	if again("/launch?project_id="+id(w.project)+"&env=SECRET%3Dx") == 0 {
		t.Error("a form with input is cached")
	}
}

// A message is shown once, on the page to which its redirect leads: a preview or a change
// that a script of the former page reads meanwhile leaves it, and so does another page.
func TestMessageOnNextPage(t *testing.T) {
	w := newWorld(t)
	v := w.visitor("mia@example.org", false)
	v.page(303, "POST", "/account/notifications", "by_mail", "1")
	for header, value := range map[string]string{"HX-Request": "true", "Sec-Fetch-Dest": "empty"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/account", nil)
		r.Header.Set("Cookie", v.cookie)
		r.Header.Set(header, value)
		rec := httptest.NewRecorder()
		w.app.ServeHTTP(rec, r)
		if rec.Code != http.StatusOK || strings.Contains(rec.Body.String(), `id="flash"`) {
			t.Errorf("%s: %d\n%s", header, rec.Code, rec.Body)
		}
	}
	other, first, second := v.page(200, "GET", "/"), v.page(200, "GET", "/account"), v.page(200, "GET", "/account")
	if strings.Contains(other, `id="flash"`) || !strings.Contains(first, `id="flash"`) || strings.Contains(second, `id="flash"`) {
		t.Error("a message is not shown once")
	}
}

// A request that was authenticated before a right was taken away leaves no page for
// later readers.
func TestCachedPageOfARightThatGoes(t *testing.T) {
	w := newWorld(t)
	stopClocks(w.store)
	page := "/projects/" + id(w.project)
	former, err := w.app.Accounts.ActorByToken(t.Context(), w.member)
	if err != nil {
		t.Fatal(err)
	}
	w.want(204, w.admin, "DELETE", page+"/members/"+id(w.place), "")
	r := httptest.NewRequestWithContext(withActor(t.Context(), former), "GET", page, nil)
	c := w.app.echo.NewContext(r, httptest.NewRecorder())
	c.SetParamNames("id")
	c.SetParamValues(id(w.project))
	if err := w.app.cached(w.app.projectPage)(c); models.KindOf(err) != models.KindNotFound {
		t.Errorf("the request gets %v", err)
	}
	if got := readPage(t, w.app, w.member, page, "en"); !strings.HasPrefix(got, "404") {
		t.Errorf("a former member sees\n%s", got)
	}
}

// Another server shows a change as soon as it has heard of it, and a right that has gone
// at once.
func TestCachedPagesOfAnotherServer(t *testing.T) {
	stores := serversOn(t, storetest.Postgres(t))
	here, there, third := stores[0], stores[1], stores[2]
	marks := make(chan struct{}, 1)
	there.OnChange(func(topics []string) {
		if slices.Contains(topics, "mark") {
			marks <- struct{}{}
		}
	})
	w := newWorldOn(t, here, func(*Config) {})
	other, fresh := newApp(t, there, func(*Config) {}, w.log), newApp(t, third, func(*Config) {}, w.log)
	t.Cleanup(other.Close)
	t.Cleanup(fresh.Close)
	mark := func() {
		storetest.InTx(t, here, func(q *store.Queries) error { q.Touch("mark"); return nil })
		<-marks
	}
	mark()
	tokens, pages := []string{w.member, w.manager, w.admin}, cachedPages(w.project)
	at := "/projects/" + id(w.project)
	for name, change := range map[string]func(){
		"another name": func() { w.want(200, w.admin, "PUT", at, `{"name":"sight","quota":`+plenty+`}`, "If-Match", "*") },
		"a workspace": func() {
			w.running(w.create(w.member, "/workspaces", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`))
		},
	} {
		if comparePages(t, other, fresh, tokens, pages, func() { change(); mark() }) == 0 {
			t.Errorf("%s: no page shows it", name)
		}
	}
	gone := func() { w.want(204, w.admin, "DELETE", at+"/members/"+id(w.place), "") }
	if comparePages(t, other, fresh, []string{w.member}, []string{at}, gone) == 0 {
		t.Error("a former member sees the project on another server")
	}
}

// serversOn are three stores on a new PostgreSQL database, with stopped clocks: two of
// running servers, and one that caches nothing.
func serversOn(t *testing.T, url string) (list []*store.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	for i := range 3 {
		s, err := store.Open(ctx, url, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if i == 0 {
			if err := migrations.Up(ctx, must(s.SQL())(t), "postgres"); err != nil {
				t.Fatal(err)
			}
			stopClocks(s)
		} else {
			s.Clock, s.Elapsed = list[0].Clock, list[0].Elapsed
		}
		list = append(list, s)
	}
	for _, s := range list[:2] {
		lease, err := s.Join(ctx, false)
		if err != nil {
			t.Fatal(err)
		}
		work.Go(func() { lease.Run(ctx, func(err error) { t.Log(err) }) })
		work.Go(func() { s.Listen(ctx, func(err error) { t.Log(err) }) })
	}
	t.Cleanup(func() { cancel(); work.Wait() })
	return list
}
