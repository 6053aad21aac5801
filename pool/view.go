package pool

import (
	"context"
	"slices"
	"time"

	"weir/models"
	"weir/policies"
	"weir/pool/placement"
)

// View is the pool as one actor may see it: shares of projects that are not
// the actor's have no names.
type View struct {
	Providers []ProviderView
	Totals    placement.Totals
	Computing int64 // percent of the measured GPUs that compute now, on average; -1 when nothing is measured
	Waiting   []WaitingView
	Unmet     []UnmetView // for administrators only
	Decisions []DecisionView
	Placed    int64 // decisions so far
}

// DecisionView is a decision that the actor may see.
type DecisionView = models.DecisionView

// ProviderView is a provider with its devices.
type ProviderView struct {
	models.Provider
	Devices   []DeviceView
	OwnerName string
	Lends     bool       // its hours are open
	Until     *time.Time // when that changes
	Holders   int        // people who hold shares there
	Chosen    bool       // it lends to chosen projects only; Terms name those of them that the actor may know
	Since     *time.Time // its agent was enrolled; only where one provider is asked for
	Manage    bool       // the actor may set its terms, drain, recall and remove it
}

// DeviceView is a device with what is held and free of it.
type DeviceView struct {
	models.Device
	ProviderName  string
	ProviderState string
	Shares        []ShareView
	FreeCores     int64
	FreeMemoryMiB int64
	Lent          bool                // the terms of its owner lend it to somebody
	Measured      *models.DeviceState // nil when nothing was measured yet
	Manage        bool                // the actor may set how it is shared
}

// ShareView is a share; of a foreign project only its size is told.
type ShareView struct {
	models.ShareView
	Anonymous bool
}

// View shows the pool.
func (p *Pool) View(ctx context.Context, actor policies.Actor) (v View, err error) {
	if err := p.access.Check(actor, policies.Platform, "pool", "read"); err != nil {
		return v, err
	}
	q := p.store.Read(ctx)
	s, err := p.load(q)
	if err != nil {
		return v, err
	}
	r := p.reader(actor)
	if v.Providers, err = r.providers(q, s); err != nil {
		return v, err
	}
	v.Totals, v.Computing = placement.Capacity(s.snapshot(today, everybody)), computing(v.Providers)
	if v.Waiting, err = r.waiting(q, s); err != nil {
		return v, err
	}
	if p.access.May(actor, policies.Platform, "provider", "read") {
		if v.Unmet, err = p.unmet(q, s); err != nil {
			return v, err
		}
	}
	if v.Placed, err = q.LastDecision(); err != nil {
		return v, err
	}
	v.Decisions, err = q.DecisionsIn(actor.Scope(), 10)
	return v, err
}

// ViewOf is the part of the view that concerns some workspaces: the devices of
// which they hold shares, and where they stand in the line. It costs as much
// as they hold, not as the pool is large.
func (p *Pool) ViewOf(ctx context.Context, actor policies.Actor, workspaces ...int64) (v View, err error) {
	if err := p.access.Check(actor, policies.Platform, "pool", "read"); err != nil {
		return v, err
	}
	q := p.store.Read(ctx)
	s, err := p.load(q)
	if err != nil {
		return v, err
	}
	r := p.reader(actor)
	v.Providers = r.holding(s, workspaces)
	l, err := p.line(q, s, nil)
	for _, request := range l.ranked {
		if slices.Contains(workspaces, request.ID) && r.mayRead(request.Project) {
			v.Waiting = append(v.Waiting, WaitingView{QueuedView: l.byID[request.ID], Place: request.Place, Behind: request.Behind})
		}
	}
	return v, err
}

// holding are the providers and devices of which workspaces hold shares, with
// these shares.
func (r reader) holding(s state, workspaces []int64) (views []ProviderView) {
	held := map[int64][]models.ShareView{}
	touched := map[int64]bool{}
	for _, share := range s.shares {
		if slices.Contains(workspaces, share.WorkspaceID) {
			held[share.DeviceID] = append(held[share.DeviceID], share)
			touched[s.byID[share.DeviceID].ProviderID] = true
		}
	}
	for _, provider := range s.providers {
		if !touched[provider.ID] {
			continue
		}
		v := ProviderView{Provider: models.Provider{ID: provider.ID, Name: provider.Name, State: provider.State}}
		for _, d := range s.lending[provider.ID] {
			if len(held[d.ID]) > 0 {
				v.Devices = append(v.Devices, r.device(s, provider, d, held[d.ID]))
			}
		}
		views = append(views, v)
	}
	return views
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
func (p *Pool) Provider(ctx context.Context, actor policies.Actor, id int64) (v ProviderView, err error) {
	if err := p.access.Check(actor, policies.Platform, "pool", "read"); err != nil {
		return v, err
	}
	q := p.store.Read(ctx)
	s, err := p.load(q)
	if err != nil {
		return v, err
	}
	views, err := p.reader(actor).providers(q, s)
	if err != nil {
		return v, err
	}
	for _, v := range views {
		if v.ID == id {
			v.Since, err = since(q, id)
			return v, err
		}
	}
	return v, models.NotFound("provider")
}

// since is when the agent that speaks for a provider was enrolled; nil when
// none does.
func since(q *models.Queries, provider int64) (*time.Time, error) {
	agent, err := q.AgentOf(provider)
	if err != nil {
		return nil, absentIsFine(err)
	}
	return &agent.CreatedAt, nil
}

// holders counts the people who hold shares at each provider.
func (s state) holders() map[int64]int {
	seen, count := map[[2]int64]bool{}, map[int64]int{}
	for _, share := range s.shares {
		at := [2]int64{s.byID[share.DeviceID].ProviderID, share.UserID}
		if !seen[at] {
			seen[at] = true
			count[at[0]]++
		}
	}
	return count
}

// reader is an actor who looks: what was asked of the rules once holds for
// the whole look.
type reader struct {
	pool  *Pool
	actor policies.Actor
	sees  map[int64]bool // projects
}

func (p *Pool) reader(actor policies.Actor) reader {
	return reader{pool: p, actor: actor, sees: map[int64]bool{}}
}

// mayRead tells whether the actor may see whose a project's shares are.
func (r reader) mayRead(project int64) bool {
	may, known := r.sees[project]
	if !known {
		may = r.pool.access.May(r.actor, project, "workspace", "read")
		r.sees[project] = may
	}
	return may
}

// books are what a look at all providers is made of, by the ids of providers
// and devices.
type books struct {
	state
	measured  map[int64]models.DeviceState
	owners    map[int64]string
	accepting map[int64]bool
	free      map[int64]placement.Device
	held      map[int64][]models.ShareView
	devices   map[int64][]models.Device
	people    map[int64]int // that hold shares at a provider
}

func (s state) books(q *models.Queries) (b books, err error) {
	b = books{state: s, accepting: map[int64]bool{}, free: map[int64]placement.Device{}, held: map[int64][]models.ShareView{},
		devices: map[int64][]models.Device{}, people: s.holders()}
	if b.measured, err = q.DeviceStates(); err != nil {
		return b, err
	}
	if b.owners, err = q.OwnerNames(); err != nil {
		return b, err
	}
	for _, node := range s.snapshot(today, everybody).Nodes {
		b.accepting[node.ID] = node.Accepting
		for _, d := range node.Devices {
			b.free[d.ID] = d
		}
	}
	for _, share := range s.shares {
		b.held[share.DeviceID] = append(b.held[share.DeviceID], share)
	}
	for _, d := range s.devices {
		b.devices[d.ProviderID] = append(b.devices[d.ProviderID], d)
	}
	return b, nil
}

// around are the open shares of whatever may run on a device: its own, those
// of its instances, and those of the GPU that it is an instance of.
func (b books) around(d models.Device) (shares []models.ShareView) {
	for _, other := range b.devices[d.ProviderID] {
		if other.ID == d.ID || b.lender(other) == d.ID || other.ID == b.lender(d) {
			shares = append(shares, b.held[other.ID]...)
		}
	}
	return shares
}

// providers are all that are in the pool, or still hold a share.
func (r reader) providers(q *models.Queries, s state) ([]ProviderView, error) {
	b, err := s.books(q)
	var views []ProviderView
	for _, provider := range s.providers {
		if v := r.provider(b, provider); provider.State != models.ProviderOffline || len(v.Devices) > 0 {
			views = append(views, v)
		}
	}
	return views, err
}

func (r reader) provider(b books, provider models.Provider) ProviderView {
	v := ProviderView{Provider: provider, OwnerName: b.owners[owner(provider)], Holders: b.people[provider.ID],
		Chosen: len(provider.Terms.Projects) > 0, Manage: r.pool.MayManage(r.actor, provider)}
	v.Lends, v.Until = provider.Terms.Open(b.now)
	if !v.Manage {
		r.guard(&v)
	}
	mayShare := r.mayShare(provider)
	for _, d := range b.devices[provider.ID] {
		view := r.device(b.state, provider, d, b.held[d.ID])
		view.Manage = mayShare
		if b.accepting[provider.ID] {
			view.FreeCores, view.FreeMemoryMiB = placement.Free(b.free[d.ID])
		}
		if m, known := b.measured[d.ID]; known {
			if !v.Manage && !r.mayReadAll(b.around(d), m.At) {
				m.Processes = nil
			}
			view.Measured = &m
		}
		v.Devices = append(v.Devices, view)
	}
	return v
}

// guard takes out of a view what only who manages the provider may know: by
// what its agent is told apart, and which foreign projects it lends to.
func (r reader) guard(v *ProviderView) {
	v.Machine, v.Address, v.GPUCode, v.ReportedCode = "", "", "", ""
	if v.State == models.ProviderPending { // its reason names the code
		v.Reason = models.Say("its GPUs have changed, and they wait for an authorization")
	}
	v.Terms.Projects = slices.DeleteFunc(slices.Clone(v.Terms.Projects), func(id int64) bool { return !r.mayRead(id) })
}

// mayReadAll tells whether all that was measured at a moment is the work of
// shares that the actor may see. What runs where nobody holds a share, or ran
// before one did, is somebody else's.
func (r reader) mayReadAll(shares []models.ShareView, at time.Time) bool {
	for _, share := range shares {
		if !r.mayRead(share.ProjectID) || !at.After(share.From) {
			return false
		}
	}
	return len(shares) > 0
}

// mayShare tells whether the actor may set how a provider's devices are
// shared.
func (r reader) mayShare(provider models.Provider) bool {
	return r.pool.access.MayOwned(r.actor, owner(provider), policies.Platform, "device", "write")
}

func (r reader) device(s state, provider models.Provider, d models.Device, held []models.ShareView) DeviceView {
	v := DeviceView{Device: d, ProviderName: provider.Name, ProviderState: provider.State, Lent: lends(provider.Terms, s.lender(d), everybody)}
	for _, share := range held {
		v.Shares = append(v.Shares, r.visible(share, d))
	}
	return v
}

// visible hides whose share of a device it is from who may not see its
// project, and says how it is enforced now.
func (r reader) visible(share models.ShareView, d models.Device) ShareView {
	if share.Until == nil && share.Enforcement == models.EnforcedMPS && d.Applied != models.SharingMPS {
		share.Enforcement = models.EnforcementLapsed
	}
	if r.mayRead(share.ProjectID) {
		return ShareView{ShareView: share}
	}
	return ShareView{Anonymous: true, ShareView: models.ShareView{Share: models.Share{
		ID: share.ID, DeviceID: share.DeviceID, Cores: share.Cores, MemoryMiB: share.MemoryMiB,
		Enforcement: share.Enforcement, From: share.From, Until: share.Until, EndsAt: share.EndsAt, EndReason: share.EndReason}}}
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
	s, err := p.load(q)
	if err != nil {
		return v, nil, err
	}
	provider, err := q.Provider(device.ProviderID)
	if err != nil {
		return v, nil, err
	}
	r := p.reader(actor)
	v = r.device(s, provider, device, nil) // one that is gone is in no list
	v.Manage = r.mayShare(provider)
	views, err := r.providers(q, s)
	if err != nil {
		return v, nil, err
	}
	for _, provider := range views {
		for _, found := range provider.Devices {
			if found.ID == id {
				v = found
			}
		}
	}
	shares, err := q.ShareHistory(id, 50)
	for _, share := range shares {
		history = append(history, r.visible(share, device))
	}
	return v, history, err
}

// NodeCores is how many GPU cores each provider of the pool has, by name.
func (p *Pool) NodeCores(ctx context.Context) (map[string]int64, error) {
	s, err := p.load(p.store.Read(ctx))
	cores := map[string]int64{}
	for _, provider := range s.providers {
		if provider.State != models.ProviderOffline {
			cores[provider.Name] = 0
		}
	}
	for _, d := range s.devices {
		if name := s.names[d.ProviderID]; d.Present && d.ParentID == nil {
			cores[name] += d.Cores
		}
	}
	return cores, err
}
