package handlers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// HEAD answers as GET, without a body, wherever there is a GET without parameters.
func TestHeadAnswersLikeGet(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.app)
	defer server.Close()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(method, path string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+w.admin)
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response
	}
	tried := 0
	for _, r := range w.app.echo.Routes() {
		if r.Method != http.MethodGet || strings.ContainsAny(r.Path, ":*") || r.Path == eventsPath {
			continue
		}
		tried++
		get, head := ask("GET", r.Path), ask("HEAD", r.Path)
		if get.StatusCode != head.StatusCode || get.Header.Get("Content-Type") != head.Header.Get("Content-Type") {
			t.Errorf("%s: GET %d %s, HEAD %d %s", r.Path, get.StatusCode, get.Header.Get("Content-Type"), head.StatusCode, head.Header.Get("Content-Type"))
		}
	}
	if tried < 30 {
		t.Errorf("only %d routes tried", tried)
	}
	if r := ask("HEAD", eventsPath); r.StatusCode != 405 {
		t.Errorf("HEAD of the event stream: %d", r.StatusCode)
	}
}

func TestWrongMethods(t *testing.T) {
	w := newWorld(t)
	for request, allow := range map[string]string{
		"DELETE /projects": "GET, HEAD, POST", "POST /projects/1": "GET, HEAD, PUT", "GET /launch/preview": "POST", "DELETE /nothing": "",
	} {
		method, path, _ := strings.Cut(request, " ")
		a := w.send(w.admin, method, path, "")
		if want := map[bool]int{true: 404, false: 405}[allow == ""]; a.status != want || a.header.Get("Allow") != allow {
			t.Errorf("%s: %d, Allow: %s; want %d, %s", request, a.status, a.header.Get("Allow"), want, allow)
		}
	}
}
