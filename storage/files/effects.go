package files

import (
	"context"
	"slices"
	"sync"
)

// effects are the operations that check their rights for the last time or take effect.
// A revocation has those that are still checking check again, and waits for the others:
// only for those that it concerns, so that storage that does not answer stops no other.
type effects struct {
	mu   sync.Mutex
	open map[*effect]struct{}
}

type effect struct {
	keys    []string // the revocation keys of its rights
	revoked bool     // since the check began
	begun   bool
	ended   chan struct{}
}

// run checks the rights that the keys can revoke, and lets apply happen if they still
// hold when it begins.
func (s *effects) run(keys []string, check, apply func() error) error {
	e := &effect{keys: keys, ended: make(chan struct{})}
	s.mu.Lock()
	if s.open == nil {
		s.open = map[*effect]struct{}{}
	}
	s.open[e] = struct{}{}
	s.mu.Unlock()
	defer s.end(e)
	for {
		if err := check(); err != nil {
			return err
		}
		if s.begin(e) {
			return apply()
		}
	}
}

// begin reports whether the rights were not revoked since the check began.
func (s *effects) begin(e *effect) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.begun, e.revoked = !e.revoked, false
	return e.begun
}

func (s *effects) end(e *effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, e)
	close(e.ended)
}

// revoke returns when everything that began with rights that the keys revoke has taken
// effect, or ctx ends.
func (s *effects) revoke(ctx context.Context, keys []string) {
	for _, e := range s.begun(keys) {
		select {
		case <-e.ended:
		case <-ctx.Done():
			return
		}
	}
}

// begun marks what is checking rights that the keys revoke, and lists what has begun.
func (s *effects) begun(keys []string) (list []*effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.open {
		if !slices.ContainsFunc(e.keys, func(k string) bool { return slices.Contains(keys, k) }) {
			continue
		}
		if e.begun {
			list = append(list, e)
		} else {
			e.revoked = true
		}
	}
	return list
}
