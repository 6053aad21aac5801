package workspaces

import (
	"context"
	"sync"
	"time"

	"weir/models"
)

const (
	// maxWaiting is how many requests to a deployment can wait while others are computed.
	maxWaiting = 32
	// fullRetry is when a client may try again that finds so many.
	fullRetry = 5 * time.Second
)

// requestQueues bound the requests of this server to each deployment.
type requestQueues struct {
	mu  sync.Mutex
	all map[int64]*requestQueue // by deployment, with requests
}

// requestQueue are the requests to one deployment.
type requestQueue struct {
	computing chan struct{} // has an element for each that is computed
	requests  int           // those and the ones that wait
}

// enter waits until a request to d can be computed. Call leave after that. The error is
// rate_limited if too many wait.
func (s *requestQueues) enter(ctx context.Context, d models.Deployment) (leave func(), err error) {
	q := s.join(d)
	if q == nil {
		return nil, tooManyWait()
	}
	select {
	case q.computing <- struct{}{}:
		return func() {
			<-q.computing
			s.quit(d.ID, q)
		}, nil
	case <-ctx.Done():
		s.quit(d.ID, q)
		return nil, context.Cause(ctx)
	}
}

func tooManyWait() error {
	return models.RateLimited(fullRetry, "%d requests already wait for this deployment, which is the maximum. Repeat the request later.",
		int64(maxWaiting))
}

// join is the queue with another request; nil if it is full.
func (s *requestQueues) join(d models.Deployment) *requestQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.all[d.ID]
	if q == nil {
		q = &requestQueue{computing: make(chan struct{}, d.Batch)}
	}
	if int64(q.requests) >= d.Batch+maxWaiting {
		return nil
	}
	if s.all == nil {
		s.all = map[int64]*requestQueue{}
	}
	s.all[d.ID] = q
	q.requests++
	return q
}

func (s *requestQueues) quit(deployment int64, q *requestQueue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.requests--; q.requests == 0 {
		delete(s.all, deployment)
	}
}
