package graph

import (
	"slices"
	"strconv"

	"weir/models"
)

// Bounds of a graph.
const (
	MaxBranches  = 50_000
	MaxOperators = 50_000  // of all branches
	MaxAfter     = 200_000 // names of branches that branches wait for
	MaxRetries   = 100
	maxAmount    = 1e24 // of seconds, operations and operations per second
)

// Graph is a task that forks into branches.
type Graph struct {
	Name     string
	FLOPS    float64 // floating-point operations per second of one CPU; 0: not known
	Branches []Branch
}

// Branch is a sequence of operators.
type Branch struct {
	Name      string
	After     []string // names of branches that must have ended
	Operators []Operator
}

// Operator is one command of a branch.
type Operator struct {
	Name     string
	Kind     string   // in a model, such as Conv; empty otherwise
	Command  []string // program and arguments; a plan needs none
	Seconds  float64  // on one CPU; 0: not known
	measured bool     // not stated; see [Graph.With]
	FLOPs    float64  // floating-point operations; 0: not known
	Retries  int      // how often it may run again after it has failed
}

// refuse is an error about the graph.
func refuse(reason models.Text) error { return models.Invalid("graph", "%s", reason) }

// refuse is an error about an operator.
func (b *Branch) refuse(o Operator, reason models.Text) error {
	return refuse(models.Say("branch %s, operator %s: %s", b.Name, models.VisibleName(o.Name), reason))
}

// Check refuses graphs that are out of bounds, and gives operators without a name their number.
func (g *Graph) Check() error {
	if len(g.Branches) == 0 || len(g.Branches) > MaxBranches {
		return refuse(models.Say("must have from %d to %d branches; has %d", 1, MaxBranches, len(g.Branches)))
	}
	if !amount(g.FLOPS) || g.FLOPS > 0 && g.FLOPS < 1 {
		return refuse(models.Say("%s must be 0, or from 1 to %g", "flops_per_second", maxAmount))
	}
	operators, after, names := 0, 0, map[string]bool{}
	for _, b := range g.Branches {
		operators += len(b.Operators)
	}
	if operators > MaxOperators {
		return refuse(models.Say("must have at most %d operators; has %d", MaxOperators, operators))
	}
	for i := range g.Branches {
		b := &g.Branches[i]
		if reason := checkName(b.Name, names); !reason.Empty() {
			return refuse(models.Say("branch %s: %s", models.VisibleName(b.Name), reason))
		}
		if after += len(b.After); after > MaxAfter {
			return refuse(models.Say("its branches must wait for others at most %d times in all", MaxAfter))
		}
		if err := b.check(); err != nil {
			return err
		}
	}
	return nil
}

func (b *Branch) check() error {
	if len(b.Operators) == 0 {
		return refuse(models.Say("branch %s has no operators", b.Name))
	}
	names := map[string]bool{}
	for i := range b.Operators {
		o := &b.Operators[i]
		if o.Name == "" {
			o.Name = numbered(i)
		}
		reason := checkName(o.Name, names)
		switch {
		case !reason.Empty():
		case !amount(o.Seconds):
			reason = models.Say("%s must be from 0 to %g", "seconds", maxAmount)
		case !amount(o.FLOPs):
			reason = models.Say("%s must be from 0 to %g", "flops", maxAmount)
		case o.Retries < 0 || o.Retries > MaxRetries:
			reason = models.Say("%s must be from %d to %d", "retries", 0, MaxRetries)
		}
		if !reason.Empty() {
			return b.refuse(*o, reason)
		}
	}
	return nil
}

// numbered is the name of an operator that has none.
func numbered(i int) string { return strconv.Itoa(i + 1) }

// amount reports whether a number is finite, not negative and not huge.
func amount(f float64) bool { return f >= 0 && f <= maxAmount }

// checkName says why a name cannot be used: it must be visible and another than those before.
func checkName(name string, names map[string]bool) (reason models.Text) {
	var p models.Problems
	if models.CheckName("graph", name, &p) != name {
		p.Add("graph", "must not begin or end with a space")
	}
	if names[name] {
		p.Add("graph", "another one has this name")
	}
	names[name] = true
	if len(p) > 0 {
		reason = p[0].Reason
	}
	return reason
}

// levels are the indexes of the branches by the length of the longest chain before them, and those
// that each waits for.
func (g *Graph) levels() (levels, before [][]int, err error) {
	index := map[string]int{}
	for i, b := range g.Branches {
		index[b.Name] = i
	}
	before = make([][]int, len(g.Branches))
	for i, b := range g.Branches {
		for _, name := range b.After {
			a, known := index[name]
			if !known {
				return nil, nil, refuse(models.Say("branch %s waits for %s, which does not exist", b.Name, models.VisibleName(name)))
			}
			before[i] = append(before[i], a)
		}
	}
	const unseen, open = -1, -2
	level := slices.Repeat([]int{unseen}, len(g.Branches))
	var visit func(i int) error
	visit = func(i int) error {
		level[i] = open
		own := 0
		for _, a := range before[i] {
			if level[a] == open {
				return refuse(models.Say("branch %s waits for %s, which waits for it", g.Branches[i].Name, g.Branches[a].Name))
			}
			if level[a] == unseen {
				if err := visit(a); err != nil {
					return err
				}
			}
			own = max(own, level[a]+1)
		}
		level[i] = own
		return nil
	}
	for i := range g.Branches {
		if level[i] == unseen {
			if err := visit(i); err != nil {
				return nil, nil, err
			}
		}
	}
	for i, n := range level {
		for len(levels) <= n {
			levels = append(levels, nil)
		}
		levels[n] = append(levels[n], i)
	}
	return levels, before, nil
}

// Remaining is the graph without the operators that have ended: so many of each branch, from its
// first on.
func (g Graph) Remaining(ended map[string]int) Graph {
	rest := Graph{Name: g.Name, FLOPS: g.FLOPS}
	over := map[string]bool{}
	for _, b := range g.Branches {
		if b.Operators = b.Operators[min(ended[b.Name], len(b.Operators)):]; len(b.Operators) == 0 {
			over[b.Name] = true
			continue
		}
		rest.Branches = append(rest.Branches, b)
	}
	for i := range rest.Branches {
		b := &rest.Branches[i]
		b.After = slices.DeleteFunc(slices.Clone(b.After), func(name string) bool { return over[name] })
	}
	return rest
}
