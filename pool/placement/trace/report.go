package trace

import (
	"context"
	"math"
	"strconv"
	"time"
)

// Figure is a mean over seeds and the standard deviation of one seed.
type Figure struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
}

func figure(values []float64) (f Figure) {
	for _, v := range values {
		f.Mean += v / float64(len(values))
	}
	if len(values) < 2 {
		return f
	}
	for _, v := range values {
		f.Std += (v - f.Mean) * (v - f.Mean) / float64(len(values)-1)
	}
	f.Std = math.Sqrt(f.Std)
	return f
}

// Report is how policies did on a trace.
type Report struct {
	Nodes    int            `json:"nodes"`
	GPUs     int            `json:"gpus"`
	Seeds    []int64        `json:"seeds"`
	Policies []PolicyReport `json:"policies"`
}

// PolicyReport is how one policy did. All but the speeds is the same whenever
// the same seeds are replayed.
type PolicyReport struct {
	Policy            string            `json:"policy"`
	AllocatedPercent  map[string]Figure `json:"allocated_percent"` // by mark
	UnallocatedAt100  *Figure           `json:"unallocated_gpus_at_100"`
	DecisionsPerSec   float64           `json:"decisions_per_second"`
	MicrosPerDecision float64           `json:"microseconds_per_decision"`
	// MicrosAtScale is the cost of a decision with Scale times the machines,
	// replayed for the first seed.
	Scale         int     `json:"scale,omitempty"`
	MicrosAtScale float64 `json:"microseconds_per_decision_at_scale,omitempty"`
}

// Plan is what to replay.
type Plan struct {
	Policies []string
	Seeds    []int64
	Inflate  float64 // how much is asked for, in GPU capacities
	Scale    int     // 0 or 1 measures no second cost
}

// Run replays the trace for each policy and seed.
func (t Trace) Run(ctx context.Context, plan Plan, clock func() time.Time) (Report, error) {
	r := Report{Nodes: len(t.Nodes), GPUs: t.GPUs(), Seeds: plan.Seeds}
	for _, policy := range plan.Policies {
		p, err := t.judge(ctx, plan, policy, clock)
		if err != nil {
			return Report{}, err
		}
		r.Policies = append(r.Policies, p)
	}
	return r, nil
}

func (t Trace) judge(ctx context.Context, plan Plan, policy string, clock func() time.Time) (PolicyReport, error) {
	p := PolicyReport{Policy: policy, AllocatedPercent: map[string]Figure{}}
	allocated := map[int][]float64{}
	decisions, elapsed := 0, time.Duration(0)
	for _, seed := range plan.Seeds {
		o, err := t.Replay(ctx, policy, seed, plan.Inflate, clock)
		if err != nil {
			return p, err
		}
		decisions += o.Decisions
		elapsed += o.Elapsed
		for mark, percent := range o.Allocated {
			allocated[mark] = append(allocated[mark], percent)
		}
	}
	for mark, percents := range allocated {
		p.AllocatedPercent[strconv.Itoa(mark)] = figure(percents)
	}
	if at := allocated[100]; at != nil {
		share := figure(at)
		gpus := float64(t.GPUs()) / 100
		p.UnallocatedAt100 = &Figure{Mean: gpus * (100 - share.Mean), Std: gpus * share.Std}
	}
	p.MicrosPerDecision = micros(elapsed, decisions)
	p.DecisionsPerSec = 1e6 / p.MicrosPerDecision
	if plan.Scale > 1 {
		o, err := t.Times(plan.Scale).Replay(ctx, policy, plan.Seeds[0], plan.Inflate, clock)
		if err != nil {
			return p, err
		}
		p.Scale, p.MicrosAtScale = plan.Scale, micros(o.Elapsed, o.Decisions)
	}
	return p, nil
}

// micros is the time per decision. A clock too coarse to see any time counts
// as one nanosecond, so that the speed stays a number.
func micros(elapsed time.Duration, decisions int) float64 {
	return float64(max(elapsed, 1)) / 1e3 / float64(max(decisions, 1))
}
