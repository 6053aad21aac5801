package kube

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// projects are the applied objects of each project, by ID.
type projects struct {
	sync.Map
	drifted chan int64 // projects whose objects were changed by others, or not applied yet
	queued  sync.Map   // of drifted
}

// enqueue has the objects of a project applied soon; not if too many wait.
func (p *projects) enqueue(id int64) {
	if _, queued := p.queued.LoadOrStore(id, true); queued {
		return
	}
	select {
	case p.drifted <- id:
	default:
		p.queued.Delete(id)
	}
}

// applied describes what was applied for one project.
type applied struct {
	mu      sync.Mutex
	digest  string            // of what was applied; empty: apply it again
	objects map[string]string // digest of each object in the API server's response

	// An attempt that fails half way is continued: the objects of wanted that were applied, by
	// their digests.
	wanted string
	done   map[string]bool
}

// again has everything applied again.
func (a *applied) again() { a.digest, a.wanted, a.done = "", "", nil }

func (p *projects) entry(id int64) *applied {
	a, _ := p.LoadOrStore(id, &applied{objects: map[string]string{}})
	return a.(*applied)
}

// invalidate makes the next start of a project apply its objects again if an error
// shows that its namespace has changed.
func (p *projects) invalidate(id int64, err error) {
	if !isGone(err) {
		return
	}
	a := p.entry(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.again()
}

// isGone reports whether an error shows that a namespace is deleted.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// changed reports whether others have changed what was applied of a project.
func (p *projects) changed(id int64) bool {
	entry, ok := p.Load(id)
	if !ok {
		return false
	}
	a := entry.(*applied)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.digest == "" && a.wanted == "" && len(a.objects) > 0
}
