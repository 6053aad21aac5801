package kube

import (
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// retryPeriod is the time between retries while the API server does not respond.
const retryPeriod = time.Second

// retryTransport is the transport of the informers. It retries every second until the
// API server responds, because the backoff of the informers is up to a minute.
type retryTransport struct {
	next        http.RoundTripper
	period      time.Duration
	log         *slog.Logger
	unreachable *atomic.Bool // the API server does not respond
}

// RoundTrip implements http.RoundTripper for requests without a body.
func (s retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		resp, err := s.next.RoundTrip(req)
		if req.Context().Err() != nil {
			return resp, err
		}
		if err == nil && !busy(resp.StatusCode) {
			if s.unreachable.Swap(false) {
				s.log.Info("the cluster is followed again")
			}
			return resp, nil
		}
		if !s.unreachable.Swap(true) {
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

// busy reports whether a request can be retried after this status.
func busy(code int) bool {
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

func statusOf(resp *http.Response) int {
	if resp == nil {
		return 0
	}
	return resp.StatusCode
}

// pauseOf closes a response and returns the delay that it requests.
func (s retryTransport) pauseOf(resp *http.Response) time.Duration {
	if resp == nil {
		return s.period
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil {
		return s.period
	}
	return min(max(time.Duration(seconds)*time.Second, s.period), 10*s.period)
}
