package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestStatic(t *testing.T) {
	for _, c := range []struct {
		path  string
		code  int
		cache string
	}{
		{Asset("weir.css"), http.StatusOK, "public, max-age=31536000, immutable"},
		{Asset("htmx.min.js"), http.StatusOK, "public, max-age=31536000, immutable"},
		{"/static/000000000000/live.js", http.StatusOK, "no-cache"},
		{Asset("nothing.css"), http.StatusNotFound, ""},
		{Asset(""), http.StatusNotFound, ""},
		{"/static/weir.css", http.StatusNotFound, ""},
		{Asset("../static.go"), http.StatusNotFound, ""},
	} {
		w := httptest.NewRecorder()
		Static().ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
		if w.Code != c.code || w.Code == http.StatusOK && w.Header().Get("Cache-Control") != c.cache {
			t.Errorf("GET %s: %d, Cache-Control %q", c.path, w.Code, w.Header().Get("Cache-Control"))
		}
	}
}

// TestStylesheet keeps the stylesheet from asking for anything else.
func TestStylesheet(t *testing.T) {
	b, err := staticFiles.ReadFile("static/weir.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, forbidden := range []string{"url(", "@import", "http:", "https:"} {
		if strings.Contains(string(b), forbidden) {
			t.Errorf("weir.css contains %q", forbidden)
		}
	}
}
