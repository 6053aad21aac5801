package graph

import (
	"cmp"
	"slices"

	"weir/models"
)

// Plan shares the CPUs of a machine among the branches of a graph. Errors are about the field
// graph, or that of a setting.
func Plan(g Graph, machine []CPU, s Settings) (models.GraphPlan, error) {
	if err := g.Check(); err != nil {
		return models.GraphPlan{}, err
	}
	s, err := s.complete(len(machine))
	if err != nil {
		return models.GraphPlan{}, err
	}
	levels, before, err := g.levels()
	if err != nil {
		return models.GraphPlan{}, err
	}
	loads, relative, err := g.loads()
	if err != nil {
		return models.GraphPlan{}, err
	}
	exact, budget := s.budget(len(machine))
	reason := s.reason(len(machine))
	p := planner{g: g, loads: loads, cpus: byLoad(machine), exact: exact, GraphPlan: models.GraphPlan{Name: g.Name, CPUs: len(machine),
		Utilization: percent(s.Utilization), SecondThreshold: percent(s.SecondThreshold), FirstThreshold: percent(s.FirstThreshold),
		ReducedCPUs: s.ReducedCPUs, SerialCPUs: s.SerialCPUs, Mode: s.mode(), Budget: budget, Reason: reason.String(), Text: reason,
		Relative: relative}}
	times := models.Map(loads, func(l load) float64 { return l.seconds })
	size := budget
	if p.Mode == models.GraphSerial {
		size = 1
	}
	order := (&scheduler{times, before, levels, budget}).shortest(size)
	listed := 0
	for _, o := range order {
		listed += o.cpus
	}
	if listed > maxListed {
		return models.GraphPlan{}, models.Invalid("cpus", "the plan of %d branches would name CPUs more than %d times; state fewer CPUs",
			len(g.Branches), maxListed)
	}
	p.stages(order)
	for _, level := range levels {
		for _, wave := range waves(level, times, budget) {
			p.Equal += longest(pick(times, wave), equal(len(wave), budget))
		}
	}
	return p.GraphPlan, nil
}

// PlanOn plans for a machine of which the CPUs are equal. Errors are about the field graph, or
// that of the machine.
func PlanOn(g Graph, m models.GraphMachine) (models.GraphPlan, error) {
	if m.CPUs < 1 || m.CPUs > MaxCPUs {
		return models.GraphPlan{}, models.Invalid("cpus", "must be from %d to %d", 1, MaxCPUs)
	}
	return Plan(g, Machine(m.CPUs), Settings{Utilization: float64(m.Utilization) / 100, SecondThreshold: float64(m.SecondThreshold) / 100,
		FirstThreshold: float64(m.FirstThreshold) / 100, ReducedCPUs: m.ReducedCPUs, SerialCPUs: m.SerialCPUs})
}

// maxListed is how often a plan names CPUs at most, which bounds its size.
const maxListed = 1_000_000

// planner is a plan in the making.
type planner struct {
	models.GraphPlan
	g     Graph
	loads []load
	cpus  []CPU   // the least loaded first
	exact float64 // the budget before it was made whole
}

// stages are the batches of a schedule with their CPUs.
func (p *planner) stages(order []slot) {
	until := map[int]float64{} // by CPU: when it is free
	var running []slot
	for len(order) > 0 {
		n := 1
		for n < len(order) && order[n].batch == order[0].batch {
			n++
		}
		group, from := order[:n], order[0].from
		running = slices.DeleteFunc(append(running, group...), func(o slot) bool { return o.batch != group[0].batch && o.until <= from })
		stage := p.stage(group, running)
		place(stage.Shares, models.Map(group, func(o slot) int { return o.cpus }),
			slices.DeleteFunc(slices.Clone(p.cpus), func(c CPU) bool { return until[c.ID] > from }))
		for _, share := range stage.Shares {
			for _, id := range share.CPUs {
				until[id] = share.Until
			}
		}
		p.Stages, p.Makespan, order = append(p.Stages, stage), max(p.Makespan, stage.Until), order[n:]
	}
}

// stage is branches that begin together, beside others that run.
func (p *planner) stage(group, running []slot) models.GraphStage {
	s, total := models.GraphStage{From: group[0].from}, 0.0
	for _, o := range running {
		total += p.loads[o.branch].seconds
	}
	for _, o := range group {
		branch, load := p.g.Branches[o.branch], p.loads[o.branch]
		share := models.GraphShare{Branch: branch.Name, After: append([]string{}, branch.After...), Operators: []string{},
			Seconds: load.seconds, Assumed: load.assumed, Exact: p.exact, Until: o.until}
		if total > 0 {
			share.Exact = p.exact * load.seconds / total
		}
		for _, op := range branch.Operators {
			share.Operators = append(share.Operators, op.Name)
		}
		s.Shares, s.Until, p.Serial = append(s.Shares, share), max(s.Until, o.until), p.Serial+load.seconds
	}
	return s
}

// Place chooses the CPUs of branches that begin together anew, each as many as it has: the least
// loaded ones of a machine.
func Place(shares []models.GraphShare, machine []CPU) []models.GraphShare {
	placed := slices.Clone(shares)
	place(placed, models.Map(shares, func(s models.GraphShare) int { return len(s.CPUs) }), byLoad(machine))
	return placed
}

// place gives each share its number of the free CPUs, of which the least loaded are first. The
// largest shares choose first.
func place(shares []models.GraphShare, sizes []int, free []CPU) {
	order := make([]int, len(shares))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	for _, i := range order {
		shares[i].CPUs, free = take(free, sizes[i])
	}
}

// Revise plans what remains of a graph anew if utilization has crossed a threshold since p was
// made; else it returns p and false. ended says how many operators of each branch have ended.
// Those that run go on where they are, and the next ones take the new shares.
func Revise(p models.GraphPlan, g Graph, ended map[string]int, machine []CPU, s Settings) (models.GraphPlan, bool, error) {
	complete, err := s.complete(len(machine))
	if err != nil || complete.mode() == p.Mode {
		return p, false, err
	}
	rest := g.Remaining(ended)
	if len(rest.Branches) == 0 {
		return p, false, nil
	}
	revised, err := Plan(rest, machine, s)
	return revised, err == nil, err
}
