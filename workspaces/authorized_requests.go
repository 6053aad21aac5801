package workspaces

import (
	"context"
	"slices"
	"sync"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// requestRecheck is how long a request goes on until its right is checked again: the end
// of a membership is no event.
const requestRecheck = 5 * time.Second

// authorizedRequests are those to deployments that are computed now.
type authorizedRequests struct {
	mu   sync.Mutex
	open map[*authorizedRequest]struct{}
}

// authorizedRequest is one that is computed while the right for it lasts.
type authorizedRequest struct {
	actor   policies.Actor
	project int64
	keys    []string
	cancel  context.CancelCauseFunc
}

// begin registers a request. Its context ends, with the reason as the cause, when the right
// for it is gone. Call end when it is done.
func (c *authorizedRequests) begin(ctx context.Context, s *Service, actor policies.Actor, d models.Deployment) (
	_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	one := &authorizedRequest{actor, d.ProjectID, []string{store.RevocationKey("user", actor.User.ID),
		store.RevocationKey("project", d.ProjectID), store.SessionKey(actor.Session)}, cancel}
	c.mu.Lock()
	if c.open == nil {
		c.open = map[*authorizedRequest]struct{}{}
	}
	c.open[one] = struct{}{}
	c.mu.Unlock()
	s.recheck(ctx, one) // the right may have ended just before a revocation could see this
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(requestRecheck):
				s.recheck(ctx, one)
			}
		}
	})
	return ctx, func() {
		c.mu.Lock()
		delete(c.open, one)
		c.mu.Unlock()
		cancel(nil)
		watching.Wait()
	}
}

// with lists the requests that depend on one of the keys; nil: all.
func (c *authorizedRequests) with(keys []string) (list []*authorizedRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.open {
		if keys == nil || slices.ContainsFunc(one.keys, func(k string) bool { return slices.Contains(keys, k) }) {
			list = append(list, one)
		}
	}
	return list
}

// recheck ends a request whose right is gone, or cannot be read.
func (s *Service) recheck(ctx context.Context, one *authorizedRequest) {
	now, err := s.Actors.RefreshActor(ctx, one.actor)
	if err == nil {
		err = s.access.Check(now, one.project, policies.WorkspaceLaunch)
	}
	if err != nil {
		one.cancel(err)
	}
}

// Revoked implements [store.RevocationListener] for requests: those that are not allowed
// any more end.
func (s *Service) Revoked(ctx context.Context, keys []string) {
	for _, one := range s.requests.with(keys) {
		s.recheck(ctx, one)
	}
}

// Cut implements [store.RevocationListener].
func (s *Service) Cut() {
	for _, one := range s.requests.with(nil) {
		one.cancel(models.Unavailable(nil, "This server cannot check your rights now. Repeat the request."))
	}
}
