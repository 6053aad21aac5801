package handlers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

// keyed sends a request with an Idempotency-Key.
func (w *world) keyed(token, key, method, path, body string) answer {
	w.Helper()
	return w.send(token, method, path, body, idempotencyHeader, key)
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// rows counts what a query finds.
func (w *world) rows(query string, args ...any) (n int) {
	w.Helper()
	if err := must(w.store.SQL())(w).QueryRow(query, args...).Scan(&n); err != nil {
		w.Fatalf("%s: %v", query, err)
	}
	return n
}

func (w *world) exec(statement string) {
	w.Helper()
	if _, err := must(w.store.SQL())(w).Exec(statement); err != nil {
		w.Fatalf("%s: %v", statement, err)
	}
}

// expireKeys makes all keys older than their lifetime.
const expireKeys = "UPDATE idempotency_keys SET created_at = '2026-01-01 00:00:00+00:00'"

func eachWorld(t *testing.T, test func(t *testing.T, w *world)) {
	storetest.Each(t, func(t *testing.T, s *store.Store) { test(t, newWorldOn(t, s, func(*Config) {})) })
}

func TestSameKeyIsCarriedOutOnce(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		body := `{"project_id":` + id(w.project) + `,"environment_id":` + id(w.environment) + `}`
		first := w.keyed(w.member, "k1", "POST", "/workspaces", body)
		again := w.keyed(w.member, "k1", "POST", "/workspaces", body)
		if first.status != 201 || first.replayed() || !again.replayed() {
			t.Fatalf("%d %s, then %d %v", first.status, first.raw, again.status, again.header)
		}
		for _, name := range []string{"Location", "ETag", "Content-Type"} {
			if first.header.Get(name) == "" || first.header.Get(name) != again.header.Get(name) {
				t.Errorf("%s: %q, then %q", name, first.header.Get(name), again.header.Get(name))
			}
		}
		if again.status != 201 || again.raw != first.raw || w.rows("SELECT COUNT(*) FROM workspaces") != 1 {
			t.Errorf("%d %s\nwant %s", again.status, again.raw, first.raw)
		}
		other := w.keyed(w.member, "k1", "POST", "/workspaces", strings.Replace(body, "{", `{"name":"b",`, 1))
		if fields := w.problem(other); other.status != 422 || fields[idempotencyHeader] == "" {
			t.Errorf("another request with the key: %d %s", other.status, other.raw)
		}
		stop := w.keyed(w.member, "k1", "POST", first.header.Get("Location")[len(apiPrefix):]+"/stop", "")
		if stop.status != 422 {
			t.Errorf("another path with the key: %d %s", stop.status, stop.raw)
		}
		if bad := w.keyed(w.member, strings.Repeat("k", 256), "POST", "/workspaces", body); bad.status != 422 {
			t.Errorf("a long key: %d", bad.status)
		}
		if mine := w.keyed(w.manager, "k1", "POST", "/workspaces", body); mine.status != 201 || mine.replayed() {
			t.Errorf("the key of another user: %d %s", mine.status, mine.raw)
		}
		w.exec(expireKeys)
		w.exec("UPDATE holders SET name = 'earlier'")
		if late := w.keyed(w.member, "k1", "POST", "/workspaces", body); late.status != 201 || late.replayed() {
			t.Errorf("after the key has expired: %d %s", late.status, late.raw)
		}
	})
}

// Of concurrent requests with one key on two servers, one is carried out.
func TestConcurrentDoubles(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		second := newApp(t, w.store, func(*Config) {}, w.log)
		t.Cleanup(second.Close)
		body := `{"reason":"more","role":{"project_id":` + id(w.project) + `,"name":"expert","permission":"member","limit":` + slice + `}}`
		var mu sync.Mutex
		done := map[bool]int{} // by whether it was replayed
		storetest.Concurrently(12, func(i int) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, apiPrefix+"/requests", strings.NewReader(body))
			r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + w.member}, idempotencyHeader: {"one"}}
			rec := httptest.NewRecorder()
			[]*App{w.app, second}[i%2].ServeHTTP(rec, r)
			mu.Lock()
			defer mu.Unlock()
			switch replayed := rec.Header().Get("Idempotent-Replayed") == "true"; {
			case rec.Code == http.StatusCreated:
				done[replayed]++
			case rec.Code != http.StatusConflict || rec.Header().Get("Retry-After") == "":
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
		})
		if n := w.rows("SELECT COUNT(*) FROM quota_requests"); n != 1 || done[false] != 1 {
			t.Errorf("%d requests, %d first responses", n, done[false])
		}
		if after := w.keyed(w.member, "one", "POST", "/requests", body); after.status != 201 || !after.replayed() {
			t.Errorf("afterwards: %d %s", after.status, after.raw)
		}
	})
}

// Refusals of the operation are repeated; failures and requests that were not admitted
// are not.
func TestWhatIsKept(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		post := func(token, key string) answer {
			return w.keyed(token, key, "POST", "/departments", `{"name":"optics"}`)
		}
		if a := post(w.member, "k"); a.status != 403 {
			t.Fatalf("%d %s", a.status, a.raw)
		}
		w.exec("ALTER TABLE departments RENAME TO elsewhere")
		if a := post(w.admin, "k"); a.status != 500 {
			t.Fatalf("%d %s", a.status, a.raw)
		}
		w.exec("ALTER TABLE elsewhere RENAME TO departments")
		if a := post(w.admin, "k"); a.status != 201 || a.replayed() {
			t.Errorf("after an internal error: %d %s", a.status, a.raw)
		}
		if a := post(w.admin, "taken"); a.status != 409 || a.replayed() {
			t.Errorf("%d %s", a.status, a.raw)
		}
		w.exec("UPDATE departments SET name = 'former'")
		if a := post(w.admin, "taken"); a.status != 409 || !a.replayed() || a.body["kind"] != "conflict" {
			t.Errorf("a refusal is not repeated: %d %s", a.status, a.raw)
		}
		_, reader, err := w.app.Accounts.CreateTokenFor(t.Context(), policies.System("test"), "root@example.org", policies.NewToken{Name: "r", Scopes: []models.TokenScope{models.ScopeRead}})
		if err != nil {
			t.Fatal(err)
		}
		if a := post(reader, "k"); a.status != 403 {
			t.Errorf("a token without the scope gets the response: %d %s", a.status, a.raw)
		}
	})
}

// A response with a secret is not stored; its request is carried out once nevertheless.
func TestSecretsAreNotKept(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for path, body := range map[string]string{"/tokens": `{"name":"ci"}`, "/webhooks": `{"name":"hook","url":"https://example.org/hook","enabled":true}`,
			"/invitations": `{"emails":["new@example.org"]}`} {
			if first := w.keyed(w.admin, path, "POST", path, body); first.status != 201 {
				t.Fatalf("%s: %d %s", path, first.status, first.raw)
			}
			again := w.keyed(w.admin, path, "POST", path, body)
			if again.status != 409 || again.header.Get("Retry-After") == "" || !strings.Contains(again.raw, "was carried out") {
				t.Errorf("%s again: %d %s", path, again.status, again.raw)
			}
		}
		if n := w.rows("SELECT COUNT(*) FROM idempotency_keys WHERE body <> '' OR status <> 0"); n != 0 {
			t.Errorf("%d responses are stored", n)
		}
		w.exec(expireKeys)
		storetest.InTx(t, w.store, func(q *store.Queries) error {
			_, err := q.DeleteExpired(q.Now())
			return err
		})
		if n := w.rows("SELECT COUNT(*) FROM idempotency_keys"); n != 0 {
			t.Errorf("%d expired keys are left", n)
		}
	})
}

// The document describes the key for every operation that creates something.
func TestKeyIsDocumented(t *testing.T) {
	n := 0
	for path, item := range describe().Paths {
		if item.Post == nil || !creates(item.Post.Method, item.Post.DefaultStatus) {
			continue
		}
		n++
		if p := item.Post.Parameters; len(p) == 0 || p[0].Name != idempotencyHeader {
			t.Errorf("POST %s has no parameter %s", path, idempotencyHeader)
		}
	}
	if n < 15 {
		t.Errorf("%d operations create something", n)
	}
}
