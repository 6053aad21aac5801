package proxy

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"weir/models"
)

// recheckLoop admits long flows again until ctx ends, because some rights expire
// without an event.
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
			p.transport.prune(now)
		}
	}
}

// readmit cuts the selected flows whose visitors the gate does not admit to the same
// notebook again. It calls the gate once for each visitor and notebook. keepUnknown
// decides about flows for which the gate fails.
func (p *Proxy) readmit(ctx context.Context, selected func(*flow, Target) bool, keepUnknown bool) {
	type visit struct {
		workspace  int64
		generation int64
		credential Credential
	}
	checked := map[visit]bool{}
	for _, f := range p.flows.all() {
		credential, target, admitted := f.admission()
		if !admitted || !selected(f, target) {
			continue
		}
		v := visit{f.workspace, target.Generation, credential}
		stays, known := checked[v]
		if !known {
			answer, err := p.cfg.Gate.Admit(ctx, v.workspace, v.credential)
			outage := slices.Contains([]models.Kind{models.KindInternal, models.KindUnavailable}, models.KindOf(err))
			stays = outage && keepUnknown || err == nil && answer.Generation == v.generation
			checked[v] = stays
		}
		if !stays {
			f.cut()
		}
	}
}

// activity reports the use of workspaces, of each at most once a second.
type activity struct {
	report func(workspace int64)
	mu     sync.Mutex
	last   map[int64]time.Time
}

func newActivity(report func(int64)) *activity {
	return &activity{report: report, last: map[int64]time.Time{}}
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

// prune deletes the workspaces without recent use.
func (a *activity) prune(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.last, func(_ int64, last time.Time) bool { return now.Sub(last) >= time.Second })
}
