package pool

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/placement"
	"weir/pool/placement/history"
)

// Past is the past requests of the pool, with its machines, for a replay.
type Past struct {
	Nodes   []placement.Node   // empty, and as if all were online
	Demands []placement.Demand // oldest first
	Jobs    []history.Job
	Assumed int           // jobs that never ran
	Span    time.Duration // for which those are assumed to last
}

// maxPast bounds how many requests of the past are read.
const maxPast = 1_000_000

// ReadPast reads the requests since a moment; the zero time is all there are.
func ReadPast(q *store.Queries, since time.Time) (p Past, err error) {
	demands, err := q.PastDemands(since, maxPast)
	if err != nil {
		return p, err
	}
	var known []history.Past
	for _, d := range demands {
		demand := demandOf(d.ProjectID, d.Demand)
		p.Demands = append(p.Demands, demand)
		known = append(known, history.Past{Requested: d.RequestedAt, Started: d.StartedAt, Ended: d.EndedAt, Given: d.Starts > 0, Demand: demand})
	}
	p.Jobs, p.Assumed, p.Span = history.Jobs(known, q.Now())
	everywhere := func(*models.Provider, bool) bool { return true }
	snap, err := readSnapshot(q, everywhere)
	p.Nodes = snap.possible()
	return p, err
}

// possible are the machines of the pool as they could be: what is only silent
// or draining today is not gone.
func (s snapshot) possible() (nodes []placement.Node) {
	for _, node := range s.placement(onceAllLend).Nodes {
		var devices []placement.Device
		for _, d := range node.Devices {
			if d.Healthy && !d.NotLent {
				d.Shares = nil
				devices = append(devices, d)
			}
		}
		if node.Accepting && len(devices) > 0 {
			node.Devices = devices
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// PlanningInput requests a replay of the pool's past with more machines.
type PlanningInput struct {
	Add    string `json:"add" maxLength:"500" doc:"comma-separated machines to add, such as h100:8x4"`
	Days   int64  `json:"days,omitempty" minimum:"0" maximum:"3650" doc:"number of past days; default 30"`
	Policy string `json:"policy,omitempty" doc:"scheduling policy; absent for the pool's policy"`
}

// PlanningView compares the pool's past on its machines, and with more.
type PlanningView struct {
	Now     history.Result  `json:"now"`
	Then    history.Result  `json:"then"` // with what is added
	Added   string          `json:"added"`
	Policy  string          `json:"policy"`
	Days    int64           `json:"days"`
	Jobs    int             `json:"requests"`
	Assumed int             `json:"assumed" doc:"requests that never ran; assumed to have the median duration"`
	Span    history.Seconds `json:"assumed_seconds"`
}

const (
	usualDays = 30
	maxDays   = 3650
	// maxReplayed bounds what one look in the portal may cost.
	maxReplayed = 20_000
)

// PlanningPolicies lists the placement policies that a replay can use.
func (s *Scheduler) PlanningPolicies(actor policies.Actor) ([]string, error) {
	return placement.Policies(), s.access.Check(actor, policies.Platform, policies.ProviderRead)
}

// Planning replays the pool's own past; only administrators and auditors may. A
// pool without requests yet has none: Jobs is 0.
func (s *Scheduler) Planning(ctx context.Context, actor policies.Actor, in PlanningInput) (v PlanningView, err error) {
	if err := s.access.Check(actor, policies.Platform, policies.ProviderRead); err != nil {
		return v, err
	}
	in.Days = cmp.Or(in.Days, usualDays)
	extra, err := in.check()
	if err != nil {
		return v, err
	}
	q := s.store.Read(ctx)
	past, err := ReadPast(q, q.Now().AddDate(0, 0, -int(in.Days)))
	if err != nil {
		return v, err
	}
	if len(past.Jobs) > maxReplayed {
		past.Jobs = past.Jobs[len(past.Jobs)-maxReplayed:]
	}
	policy, err := placement.PolicyNamed(in.Policy, past.Demands)
	if err != nil {
		return v, models.Invalid("policy", "must be one of %s", strings.Join(placement.Policies(), ", "))
	}
	v = PlanningView{Added: in.Add, Policy: policy.Name, Days: in.Days, Jobs: len(past.Jobs), Assumed: past.Assumed,
		Span: history.Seconds(past.Span)}
	v.Now, v.Then = history.Compare(past.Nodes, extra, past.Jobs, policy)
	return v, nil
}

func (in PlanningInput) check() (extra []placement.Node, err error) {
	var p models.Problems
	if in.Days < 0 || in.Days > maxDays {
		p.Add("days", "must be from 1 to %d", int64(maxDays))
	}
	for text := range strings.SplitSeq(in.Add, ",") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		text = strings.TrimSpace(text)
		machines, err := history.ParseMachines(text)
		if errors.Is(err, history.ErrFormat) {
			p.Add("add", "%q must be a model and its number of GPUs, for example h100:8 or h100:8x4", text)
			continue
		}
		if err != nil {
			p.Add("add", "cannot be read: %s", err.Error())
			continue
		}
		extra = history.Join(extra, machines.Nodes())
	}
	return extra, p.Err()
}
