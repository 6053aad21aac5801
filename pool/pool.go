package pool

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/policies"
	"weir/pool/placement"
)

// Pool keeps providers, their devices, and who holds which share of them.
type Pool struct {
	store  *models.Store
	access *policies.Access
	policy placement.Policy
}

// New keeps the pool in store.
func New(store *models.Store, access *policies.Access) *Pool {
	return &Pool{store: store, access: access, policy: placement.BestFit()}
}

// Enlist makes this machine a provider with what its inventory reports now.
// Devices that it no longer reports are marked absent: nothing new is placed
// on them.
func (p *Pool) Enlist(ctx context.Context, name string, inventory Inventory) error {
	reports, err := inventory.Devices(ctx)
	if err != nil {
		return err
	}
	return p.store.InTx(ctx, func(q *models.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		now := q.Now()
		provider := models.Provider{Name: name, State: models.ProviderOnline, SeenAt: now, Version: 1, CreatedAt: now}
		if err := q.SaveProvider(&provider); err != nil {
			return err
		}
		if err := retireOthers(q, provider.ID); err != nil {
			return err
		}
		before, err := q.DevicesOf(provider.ID)
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, r := range reports {
			d := deviceOf(r, provider.ID, now)
			if err := q.SaveDevice(&d); err != nil {
				return err
			}
			seen[r.UUID] = true
		}
		if err := markAbsent(q, provider.ID, seen); err != nil {
			return err
		}
		return auditDevices(q, provider, before)
	})
}

// retireOthers takes every other machine out of the pool: workspaces run on
// this one alone, which may have had another name before.
func retireOthers(q *models.Queries, provider int64) error {
	providers, err := q.Providers()
	if err != nil {
		return err
	}
	for _, p := range providers {
		if p.ID == provider || p.State == models.ProviderOffline {
			continue
		}
		before := p
		p.State = models.ProviderOffline
		if err := q.SaveProvider(&p); err != nil {
			return err
		}
		if err := markAbsent(q, p.ID, nil); err != nil {
			return err
		}
		change := policies.Change{Action: "retire", Object: "provider", ID: p.ID, Before: before, After: p}
		if err := policies.System("inventory").Audit(q, change); err != nil {
			return err
		}
	}
	return nil
}

// auditDevices keeps what has changed of a provider's devices, if anything.
func auditDevices(q *models.Queries, provider models.Provider, before []models.Device) error {
	after, err := q.DevicesOf(provider.ID)
	if err != nil || slices.Equal(before, after) {
		return err
	}
	return policies.System("inventory").Audit(q, policies.Change{Action: "enlist", Object: "provider", ID: provider.ID,
		Before: before, After: after})
}

func deviceOf(r DeviceReport, provider int64, now time.Time) models.Device {
	return models.Device{ProviderID: provider, UUID: r.UUID, Number: int64(r.Index), Minor: int64(r.Minor), Model: r.Model,
		MemoryMiB: r.MemoryMiB, Architecture: r.Architecture, PCI: r.PCIBusID, Driver: r.Driver,
		Simulated: r.Simulated, Present: true, Version: 1, CreatedAt: now}
}

func markAbsent(q *models.Queries, provider int64, seen map[string]bool) error {
	devices, err := q.DevicesOf(provider)
	if err != nil {
		return err
	}
	for _, d := range devices {
		if d.Present && !seen[d.UUID] {
			d.Present = false
			if err := q.UpdateDevice(&d); err != nil {
				return err
			}
		}
	}
	return nil
}

// state is what the pool knows at one moment, for decisions and for pages.
type state struct {
	providers []models.Provider
	devices   []models.Device
	shares    []models.ShareView
	byID      map[int64]models.Device
	names     map[int64]string
}

func load(q *models.Queries) (s state, err error) {
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

// snapshot turns the state into what placement decides over; without held,
// as if nobody held anything.
func (s state) snapshot(held bool) placement.Snapshot {
	shares := map[int64][]placement.Share{}
	if held {
		for _, v := range s.shares {
			shares[v.DeviceID] = append(shares[v.DeviceID], placement.Share{
				Cores: v.Cores, MemoryMiB: v.MemoryMiB, Project: v.ProjectID, Holder: v.WorkspaceID})
		}
	}
	var snap placement.Snapshot
	for _, p := range s.providers {
		node := placement.Node{ID: p.ID, Name: p.Name, Accepting: p.State == models.ProviderOnline}
		for _, d := range s.devices {
			if d.ProviderID == p.ID {
				node.Devices = append(node.Devices, placement.Device{ID: d.ID, Index: int(d.Number), Model: d.Model,
					MemoryMiB: d.MemoryMiB, Exclusive: d.Exclusive, Mixed: d.Mixed, Healthy: d.Present, Shares: shares[d.ID]})
			}
		}
		snap.Nodes = append(snap.Nodes, node)
	}
	return snap
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
		if dev.Present && placement.MatchesModel(dev.Model, d.GPUModel) && (smallest == 0 || dev.MemoryMiB < smallest) {
			smallest = dev.MemoryMiB
		}
	}
	d.GPUMemoryMiB = smallest * d.Cores / placement.Whole
	return d, err
}

// Answer tells what the pool would say to the demand of w now, without taking
// anything. A workspace without an id is one that does not exist yet.
func (p *Pool) Answer(q *models.Queries, w models.Workspace) (models.Answer, error) {
	s, err := load(q)
	if err != nil {
		return models.Answer{}, err
	}
	waiting, err := q.WorkspacesIn(models.StateQueued)
	if err != nil {
		return models.Answer{}, err
	}
	a := answer(s, demandOf(w.ProjectID, w.Demand), w.Demand, p.policy)
	a.Waiting = len(waiting)
	if a.Outcome != models.OutcomeGranted && a.Outcome != models.OutcomePartial {
		return a, nil
	}
	behind, err := p.ahead(q, s, waiting, w)
	if behind {
		a = models.Answer{Outcome: models.OutcomeDelayed, Waiting: len(waiting),
			Explanation: models.Say("a request that has waited for more than %d minutes comes first", int64(patience/time.Minute))}
	}
	return a, err
}

func demandOf(project int64, d models.Demand) placement.Demand {
	return placement.Demand{GPUs: int(d.GPUs), Cores: d.Cores, MemoryMiB: d.GPUMemoryMiB, Model: d.GPUModel, Project: project}
}

// answer is the decision itself, over a state that does not change.
func answer(s state, d placement.Demand, asked models.Demand, policy placement.Policy) models.Answer {
	now := s.snapshot(true)
	choice, refusal := placement.Place(now, d, policy)
	if refusal == nil {
		return s.granted(models.OutcomeGranted, choice, d)
	}
	reason, reasons := explainRefusal(*refusal, d)
	if _, never := placement.Place(s.snapshot(false), d, policy); never != nil {
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

// enforcement says how a share is held apart from others: a device taken
// whole or marked exclusive is visible to its holder alone; a fraction is a
// promise that nothing enforces in this form of the pool.
func enforcement(d models.Device, cores int64) string {
	if cores == placement.Whole || d.Exclusive {
		return models.EnforcedExclusive
	}
	return models.EnforcedAdvisory
}

// Claim takes the shares that w demands, within the transaction q, and records
// the decision. Nothing is taken unless the outcome is granted.
func (p *Pool) Claim(q *models.Queries, w models.Workspace) (models.Answer, error) {
	if err := q.LockPool(); err != nil {
		return models.Answer{}, err
	}
	a, err := p.Answer(q, w)
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
	return a, nil
}

// Record keeps a decision and its explanation for people to read.
func (p *Pool) Record(q *models.Queries, w models.Workspace, a models.Answer) error {
	if w.Demand.GPUs == 0 {
		return nil
	}
	d := models.Decision{At: q.Now(), ProjectID: w.ProjectID, UserID: w.UserID,
		Outcome: a.Outcome, Demand: Words(w.Demand), Explanation: a.Explanation}
	if w.ID != 0 {
		d.WorkspaceID = &w.ID
	}
	return q.CreateDecision(&d)
}

// Release ends the shares of a workspace.
func (p *Pool) Release(q *models.Queries, workspace int64) error {
	return q.EndShares(workspace, q.Now())
}
