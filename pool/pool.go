package pool

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"weir/models"
	"weir/policies"
	"weir/pool/placement"
)

// Pool keeps providers, their devices, and who holds which share of them.
type Pool struct {
	store   *models.Store
	access  *policies.Access
	policy  atomic.Pointer[placement.Policy]
	started time.Time // nobody is taken for silent before there was time to speak
	home    atomic.Int64
	known   atomic.Pointer[remembered]
	reach   func(models.Provider) bool // nil: workspaces run on this machine
}

// New keeps the pool in store. It places by Weir's own policy.
func New(store *models.Store, access *policies.Access) *Pool {
	p := &Pool{store: store, access: access, started: store.Now()}
	policy, _ := placement.PolicyNamed("", nil, 0) // the default's name is known
	p.policy.Store(&policy)
	return p
}

// Reach tells the pool on whose machines workspaces can run, where that is
// not this machine alone. It must be called before the pool is used.
func (p *Pool) Reach(reach func(models.Provider) bool) { p.reach = reach }

// PlaceBy chooses another policy: one of placement.Policies.
func (p *Pool) PlaceBy(name string) error {
	policy, err := placement.PolicyNamed(name, nil, p.started.UnixNano())
	if err == nil {
		p.policy.Store(&policy)
	}
	return err
}

// learned is how many of the newest demands a policy learns from.
const learned = 10_000

// learn teaches the policy what is usually asked of this pool.
func (p *Pool) learn(ctx context.Context) error {
	past, err := p.store.Read(ctx).PastDemands(learned)
	if err != nil {
		return err
	}
	demands := make([]placement.Demand, len(past))
	for i, d := range past {
		demands[i] = demandOf(d.ProjectID, d.Demand)
	}
	policy, err := placement.PolicyNamed(p.policy.Load().Name, demands, p.started.UnixNano())
	if err == nil {
		p.policy.Store(&policy)
	}
	return err
}

// state is what the pool knows at one moment, for decisions and for pages.
type state struct {
	version   int64 // of the pool; 0 when it changed while it was read
	now       time.Time
	home      int64 // the provider that is this machine; 0: none is
	reach     func(models.Provider) bool
	providers []models.Provider
	devices   []models.Device
	shares    []models.ShareView
	byID      map[int64]models.Device
	names     map[int64]string
}

// remembered is a state with the version of the pool at which it was read.
type remembered struct {
	version int64
	state   state
}

// load reads the state, or remembers it: as long as the pool's version is the
// same, nothing of it has changed. A transaction that has changed the pool
// itself reads, and what it reads is not remembered.
func (p *Pool) load(q *models.Queries) (s state, err error) {
	if q.PoolChanges() > 0 {
		return p.read(q)
	}
	version, err := q.PoolVersion()
	if err != nil {
		return s, err
	}
	if known := p.known.Load(); known != nil && known.version == version {
		return p.present(q, known.state, version), nil
	}
	if s, err = p.read(q); err != nil {
		return s, err
	}
	again, err := q.PoolVersion()
	if err == nil && again == version { // nobody has changed it in between
		p.known.Store(&remembered{version, s})
		s.version = version
	}
	return s, err
}

// present is a state of which only the time has changed.
func (p *Pool) present(q *models.Queries, s state, version int64) state {
	s.now, s.home, s.reach, s.version = q.Now(), p.home.Load(), p.reach, version
	return s
}

func (p *Pool) read(q *models.Queries) (s state, err error) {
	s.now, s.home, s.reach = q.Now(), p.home.Load(), p.reach
	if s.providers, err = q.Providers(); err != nil {
		return s, err
	}
	if s.devices, err = q.Devices(); err != nil {
		return s, err
	}
	s.shares, err = q.OpenShares()
	s.byID, s.names = map[int64]models.Device{}, map[int64]string{}
	for _, d := range s.devices {
		s.byID[d.ID] = d
	}
	for _, p := range s.providers {
		s.names[p.ID] = p.Name
	}
	return s, err
}

// remember lets the next decision go on from this one: once the transaction
// is committed, the state is what it was and the shares that were taken. It
// needs the pool's lock since before s was loaded.
func (p *Pool) remember(q *models.Queries, s state, workspace int64, taken int) error {
	if s.version == 0 || q.PoolChanges() != taken {
		return nil
	}
	views, err := q.ShareViewsOf(workspace)
	if err != nil {
		return err
	}
	version := s.version
	s.shares = append(slices.Clip(s.shares), views...)
	q.AfterCommit(func() {
		if q.PoolChanges() == taken { // and nothing else since
			p.known.Store(&remembered{version + 1, s})
		}
	})
	return nil
}

// everybody stands for no project in particular.
const everybody = 0

// vantage is from where a state is looked at.
type vantage int

const (
	today vantage = iota // as it is
	freed                // as it is, but nobody holds anything
	ever                 // nobody holds anything, and every machine lends
)

// snapshot turns the state into what placement decides over for a project.
func (s state) snapshot(from vantage, project int64) placement.Snapshot {
	shares := map[int64][]placement.Share{}
	if from == today {
		for _, v := range s.shares {
			shares[v.DeviceID] = append(shares[v.DeviceID], placement.Share{
				Cores: v.Cores, MemoryMiB: v.MemoryMiB, Project: v.ProjectID, Holder: v.WorkspaceID})
		}
	}
	devices := map[int64][]models.Device{}
	for _, d := range s.devices {
		devices[d.ProviderID] = append(devices[d.ProviderID], d)
	}
	var snap placement.Snapshot
	for _, p := range s.providers {
		snap.Nodes = append(snap.Nodes, s.node(p, devices[p.ID], shares, from, project))
	}
	return snap
}

// node is one provider. A GPU that is cut into instances stands there by
// these.
func (s state) node(p models.Provider, devices []models.Device, shares map[int64][]placement.Share, from vantage, project int64) placement.Node {
	open, _ := p.Terms.Open(s.now)
	node := placement.Node{ID: p.ID, Name: p.Name, Accepting: p.State == models.ProviderOnline && open,
		Unreachable: !s.reaches(p, devices)}
	if from == ever {
		node.Accepting = p.State != models.ProviderOffline
	}
	byUUID := map[string]int64{}
	for _, d := range devices {
		byUUID[d.UUID] = d.ID
	}
	for _, d := range devices {
		if d.Applied == models.SharingMIG && d.ParentID == nil && len(shares[d.ID]) == 0 {
			continue
		}
		v := placement.Device{ID: d.ID, Index: int(d.Number), Model: d.Model, MemoryMiB: d.MemoryMiB, Cores: d.Cores,
			Exclusive: d.Exclusive(), Mixed: d.Mixed, Healthy: d.Present && d.Trouble.Empty(),
			Changing: from != ever && s.changing(d), NotLent: !lends(p.Terms, s.lender(d), project), Shares: shares[d.ID]}
		if p.Terms.Cores > 0 {
			v.Cores = min(v.Cores, p.Terms.Cores)
		}
		v.Single = d.Sharing == models.SharingMPS // a program reaches one daemon, and each GPU has its own
		if d.ParentID != nil {
			v.Parent = *d.ParentID
			s.boundInstance(&v, p.Terms, from)
		}
		for _, uuid := range d.Peers {
			if id, known := byUUID[uuid]; known {
				v.Peers = append(v.Peers, id)
			}
		}
		node.Devices = append(node.Devices, v)
	}
	return node
}

// reaches tells whether workspaces can use a provider's GPUs. Where they run
// on this machine alone, GPUs that are only simulated are nowhere, and so
// everywhere.
func (s state) reaches(p models.Provider, devices []models.Device) bool {
	if s.reach != nil {
		return s.reach(p)
	}
	return p.ID == s.home || !slices.ContainsFunc(devices, func(d models.Device) bool { return !d.Simulated })
}

// lends asks the terms about a device; for everybody, whether it is lent to
// anybody.
func lends(t models.Terms, device, project int64) bool {
	if project == everybody {
		t.Projects = nil
	}
	return t.Lends(device, project)
}

// lender is the physical GPU by which terms name a device.
func (s state) lender(d models.Device) int64 {
	if d.ParentID != nil {
		return *d.ParentID
	}
	return d.ID
}

// boundInstance keeps the instances of a GPU together within what its owner
// lends of it.
func (s state) boundInstance(v *placement.Device, t models.Terms, from vantage) {
	if t.Cores == 0 {
		return
	}
	left := t.Cores
	for _, share := range s.shares {
		if sibling := s.byID[share.DeviceID]; from == today && share.DeviceID != v.ID && sibling.ParentID != nil && *sibling.ParentID == v.Parent {
			left -= sibling.Cores // an instance is held whole
		}
	}
	if left < v.Cores {
		v.Cores = left
	}
	v.NotLent = v.NotLent || left < 1
}

// changing tells whether a device, or the GPU that it is an instance of, is
// being brought to another way of sharing.
func (s state) changing(d models.Device) bool {
	if d.ParentID == nil {
		return d.Changing()
	}
	parent, known := s.byID[*d.ParentID]
	return !known || parent.Changing() || s.recut(parent)
}

// recut tells whether a GPU's instances are not those of its layout, or
// whether one that is there no more is still held: until its holder has left,
// the instances that took its place are not to be lent beside it.
func (s state) recut(parent models.Device) bool {
	missing := slices.Clone(parent.Layout)
	for _, d := range s.devices {
		if d.ParentID == nil || *d.ParentID != parent.ID {
			continue
		}
		if !d.Present { // it is known only because somebody holds it
			return true
		}
		at := slices.Index(missing, d.Profile)
		if at < 0 {
			return true
		}
		missing = slices.Delete(missing, at, at+1)
	}
	return false
}

// Complete fills in the GPU memory of a demand that leaves it open: in
// proportion to the cores, on the smallest device that matches the model.
func (p *Pool) Complete(q *models.Queries, d models.Demand) (models.Demand, error) {
	if d.GPUs == 0 {
		d.Cores, d.GPUMemoryMiB, d.GPUModel = 0, 0, ""
		return d, nil
	}
	if d.GPUMemoryMiB > 0 {
		return d, nil
	}
	devices, err := q.Devices()
	smallest := int64(0)
	for _, dev := range devices {
		if dev.Present && dev.ParentID == nil && placement.MatchesModel(dev.Model, d.GPUModel) && (smallest == 0 || dev.MemoryMiB < smallest) {
			smallest = dev.MemoryMiB
		}
	}
	d.GPUMemoryMiB = smallest * d.Cores / placement.Whole
	return d, err
}

// Answer tells what the pool would say to the demand of w now, without taking
// anything. A workspace without an id is one that does not exist yet.
func (p *Pool) Answer(q *models.Queries, w models.Workspace) (models.Answer, error) {
	s, err := p.load(q)
	if err != nil {
		return models.Answer{}, err
	}
	return p.answerIn(q, s, w)
}

func (p *Pool) answerIn(q *models.Queries, s state, w models.Workspace) (models.Answer, error) {
	l, err := p.lineFor(q, s, w)
	if err != nil {
		return models.Answer{}, err
	}
	kept, err := p.kept(q, s, l, w)
	if err != nil {
		return models.Answer{}, err
	}
	a := answer(s, demandOf(w.ProjectID, w.Demand), w.Demand, *p.policy.Load(), kept)
	a.Waiting = len(l.views)
	if w.ID == 0 {
		a.Waiting-- // itself
	}
	return a, nil
}

func demandOf(project int64, d models.Demand) placement.Demand {
	return placement.Demand{GPUs: int(d.GPUs), Cores: d.Cores, MemoryMiB: d.GPUMemoryMiB, Model: d.GPUModel, Project: project}
}

// answer is the decision itself, over a state that does not change. On the
// nodes that are kept for who comes first nothing is placed.
func answer(s state, d placement.Demand, asked models.Demand, policy placement.Policy, kept map[int64]bool) models.Answer {
	whole := s.snapshot(today, d.Project)
	now := without(whole, kept)
	choice, refusal := placement.Place(now, d, policy)
	if refusal == nil {
		return s.granted(models.OutcomeGranted, choice, d)
	}
	if _, refusal = placement.Place(whole, d, policy); refusal == nil {
		return models.Answer{Outcome: models.OutcomeDelayed,
			Explanation: models.Say("a request that has waited for more than %d minutes comes first", int64(patience/time.Minute))}
	}
	reason, reasons := explainRefusal(*refusal, d)
	if _, never := placement.Place(s.snapshot(ever, d.Project), d, policy); never != nil {
		text, _ := explainRefusal(*never, d)
		return models.Answer{Outcome: models.OutcomeRefused, Explanation: text, Reasons: reasons}
	}
	cores, memory := placement.Largest(now, d)
	if cores == 0 {
		return models.Answer{Outcome: models.OutcomeDelayed, Explanation: reason, Reasons: reasons}
	}
	d.Cores, d.MemoryMiB = cores, memory
	fewer := asked
	fewer.Cores, fewer.GPUMemoryMiB = cores, memory
	choice, _ = placement.Place(now, d, policy)
	a := s.granted(models.OutcomePartial, choice, d)
	a.Fewer, a.Explanation, a.Reasons = &fewer, reason, reasons
	return a
}

// without leaves nodes out of a snapshot.
func without(s placement.Snapshot, nodes map[int64]bool) placement.Snapshot {
	if len(nodes) == 0 {
		return s
	}
	return placement.Snapshot{Nodes: slices.DeleteFunc(slices.Clone(s.Nodes), func(n placement.Node) bool { return nodes[n.ID] })}
}

func (s state) granted(outcome string, c placement.Choice, d placement.Demand) models.Answer {
	a := models.Answer{Outcome: outcome}
	if d.GPUs == 0 {
		a.Explanation = models.Say("No GPU was asked for.")
		return a
	}
	a.Provider = models.ProviderID{ID: c.Node, Name: s.names[c.Node]}
	var labels []string
	for _, g := range c.Devices {
		dev := s.byID[g.Device]
		a.Grants = append(a.Grants, models.Grant{Device: dev, Cores: g.Cores, MemoryMiB: g.MemoryMiB, Enforcement: enforcement(dev, g.Cores)})
		labels = append(labels, "GPU "+itoa(dev.Number))
	}
	a.Explanation = explainChoice(a.Provider.Name, strings.Join(labels, ", "), c.Explanation)
	return a
}

// enforcement says how a share is held apart from others, by what is in
// effect on the device, never by what is only wanted.
func enforcement(d models.Device, cores int64) string {
	switch {
	case d.ParentID != nil:
		return models.EnforcedMIG
	case cores == placement.Whole || d.Exclusive():
		return models.EnforcedExclusive
	case d.Sharing == models.SharingMPS && d.Applied == models.SharingMPS:
		return models.EnforcedMPS
	default:
		return models.EnforcedAdvisory
	}
}

// Claim takes the shares that w demands, within the transaction q. Nothing is
// taken unless the outcome is granted.
func (p *Pool) Claim(q *models.Queries, w models.Workspace) (models.Answer, error) {
	if err := q.LockPool(); err != nil {
		return models.Answer{}, err
	}
	s, err := p.load(q)
	if err != nil {
		return models.Answer{}, err
	}
	a, err := p.answerIn(q, s, w)
	if err != nil || a.Outcome != models.OutcomeGranted {
		return a, err
	}
	now := q.Now()
	for _, g := range a.Grants {
		share := models.Share{DeviceID: g.Device.ID, WorkspaceID: w.ID, ProjectID: w.ProjectID, UserID: w.UserID,
			Cores: g.Cores, MemoryMiB: g.MemoryMiB, Enforcement: g.Enforcement, From: now}
		if err := q.CreateShare(&share); err != nil {
			return a, err
		}
	}
	return a, p.remember(q, s, w.ID, len(a.Grants))
}

// Record keeps a decision and its explanation for people to read.
func (p *Pool) Record(q *models.Queries, w models.Workspace, a models.Answer) error {
	if w.Demand.GPUs == 0 {
		return nil
	}
	d := models.Decision{At: q.Now(), ProjectID: w.ProjectID, UserID: w.UserID,
		Outcome: a.Outcome, Demand: Words(w.Demand), Explanation: a.Explanation,
		GPUs: w.Demand.GPUs, Cores: w.Demand.Cores, GPUModel: w.Demand.GPUModel}
	if w.ID != 0 {
		d.WorkspaceID = &w.ID
	}
	return q.CreateDecision(&d)
}

// Release ends the shares of a workspace.
func (p *Pool) Release(q *models.Queries, workspace int64) error {
	return q.EndShares(workspace, q.Now())
}
