package pool

import (
	"context"
	"slices"

	"weir/models"
	"weir/policies"
	"weir/pool/placement"
)

// View is the pool as one actor may see it: shares of projects that are not
// the actor's have no names.
type View struct {
	Providers []ProviderView
	Totals    placement.Totals
	Waiting   []WaitingView
	Decisions []models.DecisionView
}

// ProviderView is a provider with its devices.
type ProviderView struct {
	models.Provider
	Devices []DeviceView
}

// DeviceView is a device with what is held and free of it.
type DeviceView struct {
	models.Device
	ProviderName  string
	Shares        []ShareView
	FreeCores     int64
	FreeMemoryMiB int64
}

// ShareView is a share; of a foreign project only its size is told.
type ShareView struct {
	models.ShareView
	Anonymous bool
}

// WaitingView is a workspace that waits for shares.
type WaitingView struct {
	models.WorkspaceView
	Place     int
	Anonymous bool
}

// View shows the pool.
func (p *Pool) View(ctx context.Context, actor policies.Actor) (v View, err error) {
	if err := p.access.Check(actor, policies.Platform, "pool", "read"); err != nil {
		return v, err
	}
	q := p.store.Read(ctx)
	s, err := load(q)
	if err != nil {
		return v, err
	}
	snap := s.snapshot(true)
	v.Totals = placement.Capacity(snap)
	for i, provider := range s.providers {
		v.Providers = append(v.Providers, ProviderView{Provider: provider, Devices: p.devices(s, snap.Nodes[i], actor)})
	}
	if v.Waiting, err = p.waiting(q, actor); err != nil {
		return v, err
	}
	v.Decisions, err = p.decisions(q, actor)
	return v, err
}

func (p *Pool) devices(s state, node placement.Node, actor policies.Actor) []DeviceView {
	var views []DeviceView
	for _, d := range node.Devices {
		v := DeviceView{Device: s.byID[d.ID], ProviderName: node.Name}
		if node.Accepting {
			v.FreeCores, v.FreeMemoryMiB = placement.Free(d)
		}
		for _, share := range s.shares {
			if share.DeviceID == d.ID {
				v.Shares = append(v.Shares, p.visible(share, actor))
			}
		}
		views = append(views, v)
	}
	return views
}

// visible hides whose share it is from who may not see its project.
func (p *Pool) visible(share models.ShareView, actor policies.Actor) ShareView {
	if p.access.May(actor, share.ProjectID, "project", "read") {
		return ShareView{ShareView: share}
	}
	return ShareView{Anonymous: true, ShareView: models.ShareView{Share: models.Share{
		ID: share.ID, DeviceID: share.DeviceID, Cores: share.Cores, MemoryMiB: share.MemoryMiB,
		Enforcement: share.Enforcement, From: share.From, Until: share.Until}}}
}

func (p *Pool) waiting(q *models.Queries, actor policies.Actor) ([]WaitingView, error) {
	list, err := q.Workspaces(models.Everything, models.WorkspaceFilter{States: []models.WorkspaceState{models.StateQueued}}, models.Page{Limit: 200})
	if err != nil {
		return nil, err
	}
	queue, err := q.WorkspacesIn(models.StateQueued)
	if err != nil {
		return nil, err
	}
	places := map[int64]int{}
	for i, w := range queue {
		places[w.ID] = i + 1
	}
	views := make([]WaitingView, len(list))
	for i, w := range list { // newest first; the queue is oldest first
		v := WaitingView{WorkspaceView: w, Place: places[w.ID]}
		if !p.access.May(actor, w.ProjectID, "project", "read") {
			v = WaitingView{Anonymous: true, Place: v.Place, WorkspaceView: models.WorkspaceView{
				Workspace: models.Workspace{Demand: w.Demand, RequestedAt: w.RequestedAt, State: w.State}}}
		}
		views[len(list)-1-i] = v
	}
	return views, nil
}

func (p *Pool) decisions(q *models.Queries, actor policies.Actor) ([]models.DecisionView, error) {
	all, err := q.Decisions(30)
	var visible []models.DecisionView
	for _, d := range all {
		if p.access.May(actor, d.ProjectID, "project", "read") && len(visible) < 10 {
			visible = append(visible, d)
		}
	}
	return visible, err
}

// Device shows one device with the history of its shares.
func (p *Pool) Device(ctx context.Context, actor policies.Actor, id int64) (v DeviceView, history []ShareView, err error) {
	if err := p.access.Check(actor, policies.Platform, "pool", "read"); err != nil {
		return v, nil, err
	}
	q := p.store.Read(ctx)
	device, err := q.Device(id)
	if err != nil {
		return v, nil, err
	}
	s, err := load(q)
	if err != nil {
		return v, nil, err
	}
	v = DeviceView{Device: device, ProviderName: s.names[device.ProviderID]}
	for _, node := range s.snapshot(true).Nodes {
		for _, found := range p.devices(s, node, actor) {
			if found.ID == id {
				v = found
			}
		}
	}
	shares, err := q.ShareHistory(id, 50)
	for _, share := range shares {
		history = append(history, p.visible(share, actor))
	}
	return v, history, err
}

// DeviceInput is what an administrator sets of a device.
type DeviceInput struct {
	Exclusive bool  `json:"exclusive" doc:"one holder at a time"`
	Mixed     bool  `json:"mixed" doc:"fractions of different projects may share it, though nothing isolates them"`
	Version   int64 `json:"-"`
}

// UpdateDevice sets how a device may be shared; only administrators may. What
// is held stays held, so a device that is shared now cannot become exclusive.
func (p *Pool) UpdateDevice(ctx context.Context, actor policies.Actor, id int64, in DeviceInput) (d models.Device, err error) {
	if err := p.access.Check(actor, policies.Platform, "device", "write"); err != nil {
		return d, err
	}
	if in.Exclusive && in.Mixed {
		return d, models.Invalid("mixed", "an exclusive device has one holder and cannot be mixed")
	}
	err = p.access.Write(ctx, p.store, actor, policies.Need{Project: policies.Platform, Object: "device", Act: "write"}, func(q *models.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		if d, err = q.Device(id); err != nil {
			return err
		}
		if err := models.CheckVersion("device", in.Version, d.Version); err != nil {
			return err
		}
		s, err := load(q)
		if err != nil {
			return err
		}
		if err := s.allows(d, in); err != nil {
			return err
		}
		before := d
		d.Exclusive, d.Mixed = in.Exclusive, in.Mixed
		if err := q.UpdateDevice(&d); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "update", Object: "device", ID: id, Before: before, After: d})
	})
	return d, err
}

func (s state) allows(d models.Device, in DeviceInput) error {
	holders, projects := map[int64]bool{}, map[int64]bool{}
	for _, share := range s.shares {
		if share.DeviceID == d.ID {
			holders[share.WorkspaceID], projects[share.ProjectID] = true, true
		}
	}
	if d.Exclusive && !in.Exclusive && s.heldInPart(d.ID) {
		return models.Conflict("A workspace was promised this device for itself, and holds a part of it now. Wait until it ends.")
	}
	if in.Exclusive && len(holders) > 1 {
		return models.Conflict("%d workspaces hold shares of this device now. Stop all but one, or wait, before it becomes exclusive.", len(holders))
	}
	if !in.Mixed && len(projects) > 1 {
		return models.Conflict("%d projects hold shares of this device now. Wait until one is left before mixing is ended.", len(projects))
	}
	return nil
}

// heldInPart tells whether a fraction of a device is held.
func (s state) heldInPart(device int64) bool {
	return slices.ContainsFunc(s.shares, func(v models.ShareView) bool { return v.DeviceID == device && v.Cores < placement.Whole })
}

// Totals adds up the pool, for metrics.
func (p *Pool) Totals(ctx context.Context) (placement.Totals, error) {
	s, err := load(p.store.Read(ctx))
	return placement.Capacity(s.snapshot(true)), err
}
