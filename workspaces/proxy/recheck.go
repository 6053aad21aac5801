package proxy

import (
	"context"
	"sync"
	"time"

	"weir/models"
)

// recheckLoop checks the admissions of long flows again until ctx ends: some
// rights end by time alone.
func (p *Proxy) recheckLoop(ctx context.Context) {
	defer close(p.stopped)
	tick := time.NewTicker(p.cfg.Recheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			p.readmit(ctx, func(f *flow, _ Target) bool { return now.Sub(f.beganAt) >= p.cfg.Recheck }, true)
			p.activity.prune(now)
		}
	}
}

// readmit cuts the selected flows whose visitor would not be admitted to the
// same notebook now. The gate is asked once for each visitor and notebook.
// keepUnknown decides where it does not answer.
func (p *Proxy) readmit(ctx context.Context, selected func(*flow, Target) bool, keepUnknown bool) {
	type question struct {
		workspace  int64
		generation int64
		credential Credential
	}
	asked := map[question]bool{}
	for _, f := range p.flows.all() {
		credential, target, admitted := f.admission()
		if !admitted || !selected(f, target) {
			continue
		}
		q := question{f.workspace, target.Generation, credential}
		stays, known := asked[q]
		if !known {
			answer, err := p.cfg.Gate.Admit(ctx, q.workspace, q.credential)
			stays = keepUnknown && isOutage(err) || err == nil && answer.Generation == q.generation
			asked[q] = stays
		}
		if !stays {
			f.cut()
		}
	}
}

// isOutage is an error that says nothing of the visitor's right: a database
// that is away for a moment throws nobody out.
func isOutage(err error) bool {
	if err == nil {
		return false
	}
	kind := models.KindOf(err)
	return kind == models.KindInternal || kind == models.KindUnavailable
}

// activity reports that a workspace is used, at most once a second.
type activity struct {
	report func(workspace int64)
	mu     sync.Mutex
	last   map[int64]time.Time
}

func newActivity(tell func(int64)) *activity {
	return &activity{report: tell, last: map[int64]time.Time{}}
}

func (a *activity) touch(workspace int64, now time.Time) {
	if a.due(workspace, now) {
		a.report(workspace)
	}
}

func (a *activity) due(workspace int64, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, seen := a.last[workspace]; seen && now.Sub(last) < time.Second {
		return false
	}
	a.last[workspace] = now
	return true
}

// prune drops the workspaces that were not used lately.
func (a *activity) prune(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for workspace, last := range a.last {
		if now.Sub(last) >= time.Second {
			delete(a.last, workspace)
		}
	}
}
