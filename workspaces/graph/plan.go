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
	levels, err := g.levels()
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
	for n, level := range levels {
		if p.level(n+1, level); p.listed > maxListed {
			return models.GraphPlan{}, models.Invalid("cpus", "the plan of %d branches would name CPUs more than %d times; state fewer CPUs",
				len(g.Branches), maxListed)
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
	g      Graph
	loads  []load
	cpus   []CPU   // the least loaded first
	exact  float64 // the budget before it was made whole
	listed int     // how often CPUs are named so far
}

// level plans the branches of a level.
func (p *planner) level(number int, branches []int) {
	size := p.Budget
	if p.Mode == models.GraphSerial {
		size = 1
	}
	for wave, group := range waves(branches, p.loads, size) {
		if p.listed > maxListed {
			return
		}
		p.Stages = append(p.Stages, p.stage(number, wave+1, group))
		p.Makespan = p.Stages[len(p.Stages)-1].Until
	}
	for _, group := range waves(branches, p.loads, p.Budget) {
		p.Equal += longest(p.times(group), equal(len(group), p.Budget))
	}
}

// times are the times of branches on one CPU.
func (p *planner) times(branches []int) (times []float64) {
	for _, b := range branches {
		times = append(times, p.loads[b].seconds)
	}
	return times
}

// stage plans branches that run at the same time.
func (p *planner) stage(level, wave int, group []int) models.GraphStage {
	s := models.GraphStage{Level: level, Wave: wave, From: p.Makespan, Until: p.Makespan}
	times, total := p.times(group), 0.0
	for _, t := range times {
		total += t
	}
	p.Serial += total
	shares := split(times, p.Budget)
	for i, b := range group {
		branch := p.g.Branches[b]
		share := models.GraphShare{Branch: branch.Name, After: append([]string{}, branch.After...), Operators: []string{},
			Seconds: times[i], Assumed: p.loads[b].assumed, Exact: p.exact, Until: s.From + times[i]/float64(shares[i])}
		if total > 0 {
			share.Exact = p.exact * times[i] / total
		}
		for _, o := range branch.Operators {
			share.Operators = append(share.Operators, o.Name)
		}
		s.Shares, s.Until = append(s.Shares, share), max(s.Until, share.Until)
	}
	place(s.Shares, shares, p.cpus)
	p.listed += p.Budget
	return s
}

// Place chooses the CPUs of branches that run at the same time anew, each as many as it has: the
// least loaded ones by now.
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
