package pool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/placement"
	"weir/pool/queue"
)

// ProviderView is a provider with its devices.
type ProviderView struct {
	models.Provider
	Devices   []DeviceView
	OwnerName string
	Lends     bool                     // its lending hours are open
	Until     *time.Time               // when that changes
	Users     int                      // people who use its shares
	Chosen    bool                     // it lends to chosen projects only; Terms name those of them that the actor may know
	Since     *time.Time               // enrollment of its agent; only in the view of one provider
	Latencies []models.ProviderLatency // to client zones, measured lately; only in the view of one provider
	Manage    bool                     // the actor may set its terms, drain, recall and remove it
}

// Shares counts the open shares there.
func (v ProviderView) Shares() (n int) {
	for _, d := range v.Devices {
		n += len(d.Shares)
	}
	return n
}

// DeviceView is a device with its shares and what is available of it.
type DeviceView struct {
	models.Device
	ProviderName  string
	ProviderState string
	Shares        []ShareView
	FreeCores     int64
	FreeMemoryMiB int64
	Lent          bool                // the terms of its owner lend it
	Measured      *models.DeviceState // nil when nothing was measured yet
	Manage        bool                // the actor may set how it is shared
}

// ShareView is a share; of a project that the actor may not see, only its size.
type ShareView struct {
	store.ShareView
	Anonymous   bool
	Utilisation *int64 // percent of its simulated GPU; nil: unknown
}

// WaitingView is a claim in the queue.
type WaitingView struct {
	store.QueuedView
	Position  int
	Behind    queue.Criterion // why it is not before its predecessor
	Estimate  Estimate
	Anonymous bool
}

// viewBuilder builds the views of a state that an actor may see. It caches the
// actor's rights in each project.
type viewBuilder struct {
	state
	q            *store.Queries
	scheduler    *Scheduler
	actor        policies.Actor
	visible      map[int64]bool // by project: its names may be shown
	deviceStates map[int64]models.DeviceState
	utilisation  map[int64]int64     // of each of their simulated GPUs, by holder
	owners       map[int64]string    // names, by user
	seen         map[int64]time.Time // last heartbeats, by provider
}

// viewBuilder reads the state for an actor who may see the pool.
func (s *Scheduler) viewBuilder(ctx context.Context, actor policies.Actor) (v viewBuilder, err error) {
	if err := s.access.Check(actor, policies.Platform, policies.PoolRead); err != nil {
		return v, err
	}
	v = viewBuilder{q: s.store.Read(ctx), scheduler: s, actor: actor, visible: map[int64]bool{}}
	v.state, err = s.display(ctx)
	return v, err
}

// SharedReader is an actor with the same rights but nothing of its own, for a view that
// many actors read.
// Those with the same key and platform permissions see the same. The key is empty for an
// actor with own machines or shares, which are highlighted.
func (s *Scheduler) SharedReader(ctx context.Context, actor policies.Actor) (reader policies.Actor, key string, err error) {
	if err := s.access.Check(actor, policies.Platform, policies.PoolRead); err != nil {
		return actor, "", err
	}
	st, err := s.display(ctx)
	if err != nil || st.involved[actor.User.ID] {
		return actor, "", err
	}
	reader = actor
	reader.User = models.User{ID: -1, Admin: actor.User.Admin, Auditor: actor.User.Auditor}
	key = "projects"
	if !actor.Scope().All {
		for _, project := range slices.Sorted(maps.Keys(actor.Grants)) {
			key += fmt.Sprint(" ", project, s.access.May(actor, project, policies.WorkspaceRead))
		}
	}
	return reader, key, nil
}

// loadDetails reads what the views of providers need beside the snapshot.
func (v *viewBuilder) loadDetails() (err error) {
	if v.deviceStates, err = v.q.DeviceStates(); err != nil {
		return err
	}
	if v.utilisation, err = v.q.Utilisation(); err != nil {
		return err
	}
	if v.seen, err = v.q.SeenAt(); err != nil {
		return err
	}
	v.owners, err = v.q.OwnerNames()
	return err
}

// canSee reports whether the actor may see the names on a project's shares.
func (v viewBuilder) canSee(project int64) bool {
	may, known := v.visible[project]
	if !known {
		may = v.scheduler.access.May(v.actor, project, policies.WorkspaceRead)
		v.visible[project] = may
	}
	return may
}

// waiting is the queue; requests of projects that the actor may not see have no
// names.
func (v viewBuilder) waiting() ([]WaitingView, error) {
	waiting := orderQueue(v.queued, v.snapshot)
	estimates, err := v.scheduler.estimate(v.q, v.snapshot, waiting)
	views := make([]WaitingView, len(waiting.ranked))
	for i, r := range waiting.ranked {
		views[i] = waiting.view(r)
		views[i].Estimate = estimates[r.ID]
		if !v.canSee(r.Project) {
			views[i] = views[i].anonymous()
		}
	}
	return views, err
}

func (w waitQueue) view(r queue.Ranked) WaitingView {
	return WaitingView{QueuedView: w.byID[r.ID], Position: r.Position, Behind: r.Behind}
}

func (v WaitingView) anonymous() WaitingView {
	v.Anonymous = true
	v.QueuedView = store.QueuedView{Claim: models.Claim{Demand: v.Demand, RequestedAt: v.RequestedAt}}
	return v
}

// userCount is the number of people who use shares of a machine.
func (m *machine) userCount() int {
	users := map[int64]bool{}
	for _, share := range m.shares {
		users[share.UserID] = true
	}
	return len(users)
}

// sharesOf are the open shares of a device.
func (m *machine) sharesOf(device int64) (shares []store.ShareView) {
	for _, share := range m.shares {
		if share.DeviceID == device {
			shares = append(shares, share)
		}
	}
	return shares
}

// relatedShares are the open shares of a device, of its MIG instances, and of the GPU
// that it is an instance of: their processes can run on the device.
func (m *machine) relatedShares(d models.Device) (shares []store.ShareView) {
	for _, other := range m.devices {
		if other.ID == d.ID || other.PhysicalID() == d.ID || other.ID == d.PhysicalID() {
			shares = append(shares, m.sharesOf(other.ID)...)
		}
	}
	return shares
}

// free is what can be taken of a device, in GPU cores and MiB.
func (m *machine) free(device int64) (cores, memoryMiB int64) {
	n := m.nodes[asItIs]
	i := slices.IndexFunc(n.Devices, func(d placement.Device) bool { return d.ID == device })
	if i < 0 || !n.Accepting {
		return 0, 0
	}
	return placement.Free(n.Devices[i])
}

// providers are those in the pool, and those that are still in use.
func (v *viewBuilder) providers() (views []ProviderView, err error) {
	err = v.loadDetails()
	for _, m := range v.machines {
		if view := v.providerView(m); m.State != models.ProviderOffline || len(view.Devices) > 0 {
			views = append(views, view)
		}
	}
	return views, err
}

func (v viewBuilder) providerView(m *machine) ProviderView {
	providers := v.scheduler.providers
	view := ProviderView{Provider: m.Provider, OwnerName: v.owners[m.Owner()], Users: m.userCount(),
		Chosen: len(m.Terms.Projects) > 0, Manage: providers.CanManage(v.actor, m.Provider)}
	if seen, known := v.seen[m.ID]; known {
		view.SeenAt = seen
	}
	view.Lends, view.Until = m.Terms.Open(v.now)
	if !view.Manage {
		v.redact(&view)
	}
	canSetSharing := providers.CanSetSharing(v.actor, m.Provider)
	for _, d := range m.devices {
		device := v.deviceView(m, d, m.sharesOf(d.ID))
		device.Manage = canSetSharing
		device.FreeCores, device.FreeMemoryMiB = m.free(d.ID)
		if measured, known := v.deviceStates[d.ID]; known {
			if !view.Manage && !v.canSeeProcesses(m.relatedShares(d), measured.At) {
				measured.Processes = nil
			}
			device.Measured = &measured
		}
		view.Devices = append(view.Devices, device)
	}
	return view
}

// redact removes from a view what only managers of the provider may see: the
// identity of its agent, and projects that the actor may not see.
func (v viewBuilder) redact(p *ProviderView) {
	p.Machine, p.Address, p.GPUCode, p.ReportedCode = "", "", "", ""
	if p.State == models.ProviderPending { // its reason names the code
		p.Reason = models.Say("its GPUs have changed and are waiting for authorization")
	}
	p.Terms.Projects = slices.DeleteFunc(slices.Clone(p.Terms.Projects), func(id int64) bool { return !v.canSee(id) })
}

// canSeeProcesses reports whether the processes measured at a time can only
// belong to shares that the actor may see.
func (v viewBuilder) canSeeProcesses(shares []store.ShareView, at time.Time) bool {
	for _, share := range shares {
		if !v.canSee(share.ProjectID) || !at.After(share.From) {
			return false
		}
	}
	return len(shares) > 0
}

// providersUsedBy are the providers and devices that holders use, with their
// shares.
func (v viewBuilder) providersUsedBy(holders []int64) (views []ProviderView) {
	for _, m := range v.machines {
		view := ProviderView{Provider: models.Provider{ID: m.ID, Name: m.Name, State: m.State}}
		for _, d := range m.devices {
			shares := slices.DeleteFunc(m.sharesOf(d.ID), func(s store.ShareView) bool { return !slices.Contains(holders, s.HolderID) })
			if len(shares) > 0 {
				view.Devices = append(view.Devices, v.deviceView(m, d, shares))
			}
		}
		if len(view.Devices) > 0 {
			views = append(views, view)
		}
	}
	return views
}

func (v viewBuilder) deviceView(m *machine, d models.Device, shares []store.ShareView) DeviceView {
	view := DeviceView{Device: d, ProviderName: m.Name, ProviderState: m.State, Lent: m.lends(d)}
	for _, share := range shares {
		view.Shares = append(view.Shares, v.shareView(share, d))
	}
	return view
}

// shareView is the view of a share, with its present enforcement; it is anonymous
// if the actor may not see the project.
func (v viewBuilder) shareView(shareView store.ShareView, d models.Device) ShareView {
	if shareView.Until == nil && shareView.Enforcement == models.EnforcedMPS && d.Applied != models.SharingMPS {
		shareView.Enforcement = models.EnforcementLapsed
	}
	if v.canSee(shareView.ProjectID) {
		view := ShareView{ShareView: shareView}
		if percent, known := v.utilisation[shareView.HolderID]; known && d.Simulated && shareView.Until == nil {
			view.Utilisation = &percent
		}
		return view
	}
	return ShareView{Anonymous: true, ShareView: store.ShareView{Share: models.Share{
		ID: shareView.ID, DeviceID: shareView.DeviceID, Cores: shareView.Cores, MemoryMiB: shareView.MemoryMiB,
		Enforcement: shareView.Enforcement, From: shareView.From, Until: shareView.Until, EndsAt: shareView.EndsAt,
		EndReason: shareView.EndReason}}}
}
