package kube

import (
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// steadyPeriod is how often an API server that does not answer is asked again
// for the picture of the cluster.
const steadyPeriod = time.Second

// steady is the transport of those who follow the cluster. It asks again,
// once a second, until the API server answers: the followers themselves would
// wait longer each time, and know of what happened up to a minute after the
// API server is back.
type steady struct {
	next  http.RoundTripper
	every time.Duration
	log   *slog.Logger
	away  *atomic.Bool // the API server does not answer
}

// RoundTrip implements http.RoundTripper for requests without a body.
func (s steady) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		resp, err := s.next.RoundTrip(req)
		if req.Context().Err() != nil {
			return resp, err
		}
		if err == nil && !busy(resp.StatusCode) {
			if s.away.Swap(false) {
				s.log.Info("the cluster is followed again")
			}
			return resp, nil
		}
		if !s.away.Swap(true) {
			s.log.Warn("the cluster cannot be followed", "path", req.URL.Path, "err", err, "status", statusOf(resp))
		}
		pause := time.NewTimer(s.pauseOf(resp))
		select {
		case <-req.Context().Done():
			pause.Stop()
			return nil, req.Context().Err()
		case <-pause.C:
		}
	}
}

// busy tells an answer that another try may better.
func busy(code int) bool {
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

func statusOf(resp *http.Response) int {
	if resp == nil {
		return 0
	}
	return resp.StatusCode
}

// pauseOf is how long an answer, which it closes, asks to wait.
func (s steady) pauseOf(resp *http.Response) time.Duration {
	if resp == nil {
		return s.every
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil {
		return s.every
	}
	return min(max(time.Duration(seconds)*time.Second, s.every), 10*s.every)
}
