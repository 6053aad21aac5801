package pool

import (
	"context"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/placement"
)

// View is the pool as one actor may see it: shares of projects that are not
// the actor's have no names.
type View struct {
	Providers     []ProviderView
	Totals        placement.Totals
	Computing     int64 // percent of the measured GPUs that compute now, on average; -1 when nothing is measured
	Waiting       []WaitingView
	Unmet         []UnmetView // for administrators only
	Decisions     []DecisionRecordView
	DecisionCount int64 // decisions so far
}

// DecisionRecordView is a decision that the actor may see.
type DecisionRecordView = store.DecisionRecordView

// View shows the pool.
func (s *Scheduler) View(ctx context.Context, actor policies.Actor) (v View, err error) {
	views, err := s.viewBuilder(ctx, actor)
	if err != nil {
		return v, err
	}
	if v.Providers, err = views.providers(); err != nil {
		return v, err
	}
	v.Totals, v.Computing = placement.Capacity(views.placement(asItIs)), computing(v.Providers)
	if v.Waiting, err = views.waiting(); err != nil {
		return v, err
	}
	if s.access.May(actor, policies.Platform, policies.ProviderRead) {
		if v.Unmet, err = unmet(views.q, views.now); err != nil {
			return v, err
		}
	}
	if v.DecisionCount, err = views.q.LastDecision(); err != nil {
		return v, err
	}
	v.Decisions, err = views.q.DecisionsIn(actor.GrantedScope(), 10)
	return v, err
}

// ViewOf is the part of the view about some holders: the devices that they
// use and their queue positions.
func (s *Scheduler) ViewOf(ctx context.Context, actor policies.Actor, holders ...int64) (v View, err error) {
	views, err := s.viewBuilder(ctx, actor)
	if err != nil {
		return v, err
	}
	v.Providers = views.providersUsedBy(holders)
	waiting := orderQueue(views.queued, views.snapshot)
	for _, r := range waiting.ranked {
		if slices.Contains(holders, r.ID) && views.canSee(r.Project) {
			v.Waiting = append(v.Waiting, waiting.view(r))
		}
	}
	return v, err
}

// LaunchView is what a launch that is planned needs to know of the pool.
type LaunchView struct {
	Models   []string // of the GPUs
	Devices  []DeviceView
	Estimate Estimate // of a launch that cannot start now
}

// LaunchView shows the devices on which a decision grants shares or, if it does not
// grant the demand, also when the demand could be met.
func (s *Scheduler) LaunchView(ctx context.Context, actor policies.Actor, p models.Project, d models.Demand,
	decision models.Decision) (v LaunchView, err error) {
	views, err := s.viewBuilder(ctx, actor)
	if err != nil {
		return v, err
	}
	for _, m := range views.machines {
		for _, device := range m.devices {
			v.Models = append(v.Models, device.Model)
		}
	}
	slices.Sort(v.Models)
	v.Models = slices.Compact(v.Models)
	for _, g := range decision.Grants {
		if _, m := views.device(g.Device.ID); m != nil {
			devices := views.providerView(m).Devices
			v.Devices = append(v.Devices, devices[slices.IndexFunc(devices, func(d DeviceView) bool { return d.ID == g.Device.ID })])
		}
	}
	if decision.Outcome != models.OutcomeGranted {
		v.Estimate, err = s.estimateNew(views.q, views.state, p, d)
	}
	return v, err
}

// Position is the queue position of a holder, from 1; 0 if it is not queued.
func (v View) Position(holder int64) int {
	i := slices.IndexFunc(v.Waiting, func(w WaitingView) bool { return w.ID == holder })
	if i < 0 {
		return 0
	}
	return v.Waiting[i].Position
}

// computing is the mean utilisation of what is measured now.
func computing(providers []ProviderView) int64 {
	sum, n := int64(0), int64(0)
	for _, p := range providers {
		for _, d := range p.Devices {
			if d.Measured != nil && p.State != models.ProviderLost && d.ParentID == nil {
				sum, n = sum+d.Measured.Utilisation, n+1
			}
		}
	}
	if n == 0 {
		return -1
	}
	return sum / n
}

// Provider shows one provider.
func (s *Scheduler) Provider(ctx context.Context, actor policies.Actor, id int64) (v ProviderView, err error) {
	views, err := s.viewBuilder(ctx, actor)
	if err != nil {
		return v, err
	}
	at, known := views.index[id]
	if !known {
		return v, models.NotFound("provider")
	}
	if err := views.loadDetails(); err != nil {
		return v, err
	}
	v = views.providerView(views.machines[at])
	if v.State == models.ProviderOffline && len(v.Devices) == 0 {
		return ProviderView{}, models.NotFound("provider")
	}
	if v.Since, err = enrolledAt(views.q, id); err != nil {
		return v, err
	}
	v.Latencies, err = views.q.LatenciesOf(id, views.q.Now().Add(-models.LatencyAge))
	return v, err
}

// ProviderForm returns a provider for a form that removes it, which only its owner
// and administrators may.
func (s *Scheduler) ProviderForm(ctx context.Context, actor policies.Actor, id int64) (ProviderView, error) {
	v, err := s.Provider(ctx, actor, id)
	if err == nil {
		err = actor.CheckScope(policies.ProviderWrite)
	}
	if err == nil && !v.Manage {
		err = models.Forbidden("Only the owner of %s or an administrator can do this.", v.Name)
	}
	return v, err
}

// AgentForm returns a provider for a form that revokes its agent; with id 0, an
// empty one for a form that authorizes an agent.
func (s *Scheduler) AgentForm(ctx context.Context, actor policies.Actor, id int64) (v ProviderView, err error) {
	if err := s.access.Check(actor, policies.Platform, policies.ProviderWrite); err != nil || id == 0 {
		return v, err
	}
	return s.Provider(ctx, actor, id)
}

// enrolledAt is when the agent that speaks for a provider was enrolled; nil when
// none does.
func enrolledAt(q *store.Queries, provider int64) (*time.Time, error) {
	agent, err := q.AgentOf(provider)
	if err != nil {
		return nil, models.IgnoreNotFound(err)
	}
	return &agent.CreatedAt, nil
}

// Device shows one device with the history of its shares.
func (s *Scheduler) Device(ctx context.Context, actor policies.Actor, id int64) (v DeviceView, history []ShareView, err error) {
	views, err := s.viewBuilder(ctx, actor)
	if err != nil {
		return v, nil, err
	}
	device, err := views.q.Device(id)
	if err != nil {
		return v, nil, err
	}
	provider, err := views.q.Provider(device.ProviderID)
	if err != nil {
		return v, nil, err
	}
	v = views.deviceView(&machine{Provider: provider}, device, nil) // one that is gone is in no snapshot
	v.Manage = s.providers.CanSetSharing(actor, provider)
	if err := views.loadDetails(); err != nil {
		return v, nil, err
	}
	if _, m := views.device(id); m != nil {
		devices := views.providerView(m).Devices
		v = devices[slices.IndexFunc(devices, func(d DeviceView) bool { return d.ID == id })]
	}
	shares, err := views.q.ShareHistory(id, 50)
	for _, share := range shares {
		history = append(history, views.shareView(share, device))
	}
	return v, history, err
}
