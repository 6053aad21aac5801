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
	store.OnChange(func(topics []string) {
		if slices.Contains(topics, models.AnythingMayHaveChanged) { // perhaps to another database, with the same version
			p.known.Store(nil)
		}
	})
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
	s, err := p.load(q)
	smallest := int64(0)
	for _, dev := range s.devices {
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

// Answers is Answer for several demands of one project, each by itself, of
// workspaces that do not exist yet. In the line they would all stand at the
// same place, whatever they ask for.
func (p *Pool) Answers(q *models.Queries, project int64, demands []models.Demand) ([]models.Answer, error) {
	s, err := p.load(q)
	if err != nil || len(demands) == 0 {
		return nil, err
	}
	w := models.Workspace{ProjectID: project, Demand: demands[0]}
	l, err := p.lineFor(q, s, w)
	if err != nil {
		return nil, err
	}
	kept, err := p.kept(q, s, l, w)
	answers := make([]models.Answer, len(demands))
	for i, d := range demands {
		answers[i] = answer(s, demandOf(project, d), d, *p.policy.Load(), kept)
		answers[i].Waiting = len(l.views) - 1
	}
	return answers, err
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
	views, err := q.ShareViewsOf(w.ID)
	p.follow(q, len(a.Grants), func(s state) (state, bool) { return s.with(views), true })
	return a, err
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
	before := q.PoolChanges()
	if err := q.EndShares(workspace, q.Now()); err != nil {
		return err
	}
	p.follow(q, q.PoolChanges()-before, func(s state) (state, bool) { return s.without(workspace) })
	return nil
}
