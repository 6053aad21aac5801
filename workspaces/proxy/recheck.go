package proxy

import (
	"context"
	"slices"
	"time"

	"weir/models"
)

// Revoked cuts the flows with one of these revocation keys unless the gate admits
// their visitors again. When it returns, the cut flows transfer no more bytes, and
// flows that are being admitted are checked again. If the gate fails, the flow is
// cut; the visitor can connect again.
func (p *Proxy) Revoked(ctx context.Context, keys []string) {
	p.flows.epoch.Add(1)
	p.readmit(ctx, func(_ *flow, t Target) bool {
		return slices.ContainsFunc(t.RevocationKeys, func(key string) bool { return slices.Contains(keys, key) })
	}, false)
}

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
