package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A start lasts until Jupyter answers, not the proxy before it, and is ended.
func TestMeasureStart(t *testing.T) {
	answers := []int{http.StatusServiceUnavailable, http.StatusFound, http.StatusOK}
	asked, ended := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "ws-1.localhost" || r.Header.Get("Authorization") != "Bearer x" {
			t.Errorf("%s, %q", r.Host, r.Header.Get("Authorization"))
		}
		w.Header().Set("Location", "/starting")
		w.WriteHeader(answers[min(asked, len(answers)-1)])
		asked++
	}))
	defer server.Close()
	j := jupyterStart{
		begin: func(ctx context.Context) (*http.Request, error) {
			return statusRequest(ctx, server.Listener.Addr().String(), "ws-1.localhost", "/api/status", "Bearer x")
		},
		end: func(context.Context) error { ended++; return nil },
	}
	s, err := j.measure(t.Context())
	if err != nil || asked != len(answers) || ended != 1 || s.P50 <= 0 || s.Rate <= 0 {
		t.Errorf("%+v, %v: asked %d times, ended %d times", s, err, asked, ended)
	}
	refused := errors.New("refused")
	j.begin = func(context.Context) (*http.Request, error) { return nil, refused }
	if _, err := j.measure(t.Context()); !errors.Is(err, refused) || ended != 1 {
		t.Errorf("%v, ended %d times", err, ended)
	}
}
