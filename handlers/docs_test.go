package handlers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestDocs(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		path, language string
		status         int
		kind, says     string
	}{
		{"/docs", "en", http.StatusOK, "text/html; charset=UTF-8", "Tutorial for engineers"},
		{"/docs/how-to/tls", "en", http.StatusOK, "text/html; charset=UTF-8", `<h2 id="nginx">nginx</h2>`},
		{"/docs/tutorial/engineer", "zh", http.StatusOK, "text/html; charset=UTF-8", `<article class="panel doc" lang="zh-CN">`},
		{"/docs/tutorial/engineer", "en", http.StatusOK, "text/html; charset=UTF-8", `<article class="panel doc" lang="en">`},
		{"/docs?q=client_max_body_size", "en", http.StatusOK, "text/html; charset=UTF-8", `href="/docs/how-to/tls#nginx"`},
		{"/docs?q=%3Cscript%3E", "en", http.StatusOK, "text/html; charset=UTF-8", "No page contains all these words."},
		{"/docs/how-to/tls.md", "en", http.StatusOK, "text/markdown; charset=utf-8", "## nginx\n"},
		{"/docs/concepts/concepts.svg", "en", http.StatusOK, "image/svg+xml", "<svg"},
		{"/docs/openapi.json", "en", http.StatusOK, "application/json", `"openapi"`},
		{"/docs/nothing", "en", http.StatusNotFound, "text/html; charset=UTF-8", ""},
		{"/docs/nothing.md", "en", http.StatusNotFound, "text/html; charset=UTF-8", ""},
		{"/docs/../routes.go", "en", http.StatusNotFound, "text/html; charset=UTF-8", ""},
		{"/docs/docs.go", "en", http.StatusNotFound, "text/html; charset=UTF-8", ""},
	} {
		rec := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
		r.Header.Set("Accept-Language", c.language)
		w.app.ServeHTTP(rec, r)
		if kind := rec.Header().Get("Content-Type"); rec.Code != c.status || kind != c.kind || !strings.Contains(rec.Body.String(), c.says) {
			t.Errorf("GET %s: %d, %s; it does not say %q", c.path, rec.Code, kind, c.says)
		}
	}
}
