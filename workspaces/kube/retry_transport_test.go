package kube

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// answers is a transport that gives one answer after the other; 0 is none.
type answers struct {
	codes []int
	asked int
	then  func()
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	code := a.codes[min(a.asked, len(a.codes)-1)]
	if a.asked++; a.asked == len(a.codes) && a.then != nil {
		a.then()
	}
	if code == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("x"))}, nil
}

func TestSteady(t *testing.T) {
	for name, test := range map[string]struct {
		codes []int
		want  int // of the answer that the follower gets
		asked int
		said  int // lines of the log
	}{
		"well":        {[]int{200}, 200, 1, 0},
		"down":        {[]int{0, 0, 503, 502, 200}, 200, 5, 2},
		"busy":        {[]int{429, 200}, 200, 2, 2},
		"expired":     {[]int{410}, 410, 1, 0},
		"not allowed": {[]int{403}, 403, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			next := &answers{codes: test.codes}
			s := retryTransport{next, time.Microsecond, slog.New(slog.NewTextHandler(&log, nil)), new(atomic.Bool)}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://cluster/api/v1/pods?watch=true", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.RoundTrip(req)
			if err != nil || resp.StatusCode != test.want || next.asked != test.asked || s.unreachable.Load() {
				t.Errorf("%v, %v after %d requests", resp, err, next.asked)
			}
			if lines := strings.Count(log.String(), "\n"); lines != test.said {
				t.Errorf("it said:\n%s", log.String())
			}
		})
	}
}

// Who gives up waiting is let go.
func TestSteadyEnds(t *testing.T) {
	for name, next := range map[string]*answers{"refused": {codes: []int{0, 0}}, "busy": {codes: []int{503, 503}}} {
		ctx, cancel := context.WithCancel(t.Context())
		next.then = cancel
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster/api/v1/pods?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		s := retryTransport{next, time.Microsecond, slog.New(slog.DiscardHandler), new(atomic.Bool)}
		if resp, err := s.RoundTrip(req); err == nil && resp.StatusCode < 500 || next.asked != 2 || !s.unreachable.Load() {
			t.Errorf("%s: %v, %v after %d requests", name, resp, err, next.asked)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	next := &answers{codes: []int{0, 0}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster/api/v1/pods?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := retryTransport{next, time.Hour, slog.New(slog.DiscardHandler), new(atomic.Bool)}.RoundTrip(req)
		done <- err
	}()
	cancel()
	if err := <-done; err == nil {
		t.Error("a wait of an hour ended with an answer")
	}
}
