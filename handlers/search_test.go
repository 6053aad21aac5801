package handlers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// found are the kinds and names of the results of a search.
func (w *world) found(token, query string) (list []string) {
	w.Helper()
	for _, item := range w.get(token, "/search?q="+query).body["items"].([]any) {
		r := item.(map[string]any)
		list = append(list, fmt.Sprint(r["kind"], " ", r["name"]))
	}
	return list
}

// A search finds, in any case, what its reader may see, and no account for those who may not
// list them.
func TestSearch(t *testing.T) {
	w := newWorld(t)
	w.create(w.member, "/workspaces", `{"project_id":`+id(w.project)+`,"name":"Vision study","request":{"gpus":0}}`)
	for _, c := range []struct {
		who, token, query string
		want              []string
	}{
		{"an administrator", w.admin, "VISION", []string{"project vision", "workspace Vision study"}},
		{"a member", w.member, "vision", []string{"project vision", "workspace Vision study"}},
		{"a stranger", w.stranger, "vision", nil},
		{"an administrator", w.admin, "root@", []string{"user root@example.org"}},
		{"a member", w.member, "root@", nil},
		{"a member", w.member, "her", []string{"provider here"}},
		{"an administrator", w.admin, "%25", nil},
	} {
		if got := w.found(c.token, c.query); !slices.Equal(got, c.want) {
			t.Errorf("%s finds %q by %s, want %q", c.who, got, c.query, c.want)
		}
	}
	for _, bad := range []string{"", "?q=", "?q=%20", "?q=" + strings.Repeat("x", 101)} {
		w.problem(w.want(422, w.admin, "GET", "/search"+bad, ""))
	}
	for i := range searchLimit + 1 {
		w.create(w.admin, "/users", fmt.Sprintf(`{"email":"many%d@example.org","name":"Many %d","password":"choose a long password"}`, i, i))
	}
	if a := w.get(w.admin, "/search?q=many"); len(a.body["items"].([]any)) != searchLimit || fmt.Sprint(a.body["more"]) != "[user]" {
		t.Errorf("%s", a.raw)
	}
}

func TestSearchPage(t *testing.T) {
	w := newWorld(t)
	ada := w.visitor("ada@example.org", true)
	ada.shows(ada.page(200, "GET", "/search"), `action="/search"`, "!Nothing matches")
	ada.shows(ada.page(200, "GET", "/search?q=vision"), `href="/projects/1"`, "!Nothing matches")
	ada.shows(ada.page(200, "GET", "/search?q=%3Cb%3E"), "Nothing matches “&lt;b&gt;”.", `href="/docs?q=%3Cb%3E"`)
	ada.shows(ada.page(422, "GET", "/search?q="+strings.Repeat("x", 101)), `id="f-q-error"`)
}
