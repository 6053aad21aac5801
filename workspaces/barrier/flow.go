package barrier

import (
	"slices"

	"weir/models"
)

// maxNodes bounds what is analysed of one function: barriers and branches.
const maxNodes = 20_000

// maxTargets bounds the labels that all branches of a function lead to.
const maxTargets = 200_000

// flow is the control flow of a function, of barriers and branches only. Its last node is
// the end.
type flow struct {
	*function
	ops   []*operation
	nodes []node
}

// node is an operation on a barrier, or a branch.
type node struct {
	op      int // index in ops; -1: a branch
	guard   string
	negated bool
	taken   []int // where a branch leads if it is taken
	next    int
}

// flowOf builds the flow of a function.
func flowOf(f *function, named map[string]bool) (*flow, error) {
	g := &flow{function: f}
	starts := make([]int, len(f.code)+1) // node of each instruction, or of the next that has one
	for i, in := range f.code {
		starts[i] = len(g.nodes)
		op, err := operationOf(in, func(name string) bool { return named[name] || f.named[name] })
		if err != nil {
			return nil, err
		}
		if op != nil {
			if in.guard != "" {
				g.nodes = append(g.nodes, node{op: -1, guard: in.guard, negated: in.negated, taken: []int{len(g.nodes) + 1}, next: len(g.nodes) + 2})
			}
			g.nodes = append(g.nodes, node{op: len(g.ops), next: len(g.nodes) + 1})
			g.ops = append(g.ops, op)
		} else if leaves(in.opcode) {
			g.nodes = append(g.nodes, node{op: -1, guard: in.guard, negated: in.negated, taken: []int{-1 - i}, next: len(g.nodes) + 1})
		}
		if len(g.nodes) > maxNodes {
			return nil, refuse(f.line, models.Say("function %s has more than %d barriers and branches", f.name, maxNodes))
		}
	}
	starts[len(f.code)] = len(g.nodes)
	g.nodes = append(g.nodes, node{op: -1, taken: []int{}})
	return g, g.resolve(starts)
}

// leaves reports whether an instruction continues elsewhere (PTX ISA, section 9.7.12).
func leaves(opcode string) bool {
	switch opcode {
	case "bra", "bra.uni", "brx.idx", "brx.idx.uni", "ret", "ret.uni", "exit", "trap":
		return true
	}
	return false
}

// resolve replaces the instructions that branches refer to by the nodes they lead to.
func (g *flow) resolve(starts []int) error {
	targets := 0
	for i := range g.nodes {
		n := &g.nodes[i]
		if len(n.taken) != 1 || n.taken[0] >= 0 {
			continue
		}
		in := g.code[-1-n.taken[0]]
		var labels []string
		switch in.opcode {
		case "ret", "ret.uni", "exit", "trap":
			n.taken[0] = len(g.nodes) - 1
			continue
		case "bra", "bra.uni":
			labels = words(in, 0)
		default:
			if list := words(in, 1); len(list) == 1 {
				labels, _ = find(g.function, g.lists, in.block, list[0])
			}
		}
		if n.taken = nil; len(labels) == 0 {
			return refuse(in.line, models.Say("the branch has no label"))
		}
		if targets += len(labels); targets > maxTargets {
			return refuse(in.line, models.Say("the branches of function %s have more than %d labels", g.name, maxTargets))
		}
		for _, label := range labels {
			at, ok := find(g.function, g.labels, in.block, label)
			if !ok {
				return refuse(in.line, models.Say("label %s is not defined", label))
			}
			n.taken = append(n.taken, starts[at])
		}
	}
	return nil
}

// words are the tokens of an operand; none if the instruction lacks it.
func words(in instruction, i int) (list []string) {
	if i < len(in.operands) {
		for _, t := range in.operands[i] {
			list = append(list, t.text)
		}
	}
	return list
}

// class is the warps that go the same ways through a function: every branch whose
// predicate follows from the number of a thread is decided for it, the others lead both
// ways.
type class struct {
	warps   []int   // their numbers; nil: any number of warps
	edges   [][]int // nodes that follow each node; none for nodes that are not reached
	order   []int   // reached nodes: reverse postorder
	rank    []int   // position of a node in order; -1: not reached
	all     [][]int // predecessors of a node
	before  [][]int // predecessors of a node, without edges that close loops
	blank   []bool  // the node is entered from inside a loop of several entries
	inCycle []bool
	part    []int // segment of a node; -1: not reached
	stage   []int // position of a node's strongly connected component in topological order
}

// newClass follows the decisions: for each branch -1 (both ways), 0 or 1 (taken).
func (g *flow) newClass(decisions []int8) *class {
	c := &class{edges: make([][]int, len(g.nodes)), rank: slices.Repeat([]int{-1}, len(g.nodes)), before: make([][]int, len(g.nodes)),
		blank: make([]bool, len(g.nodes)), inCycle: make([]bool, len(g.nodes)), stage: make([]int, len(g.nodes))}
	ways := func(i int) []int {
		n := g.nodes[i]
		switch {
		case n.op >= 0 || n.guard != "" && decisions[i] == 0:
			return []int{n.next}
		case n.guard == "" || decisions[i] == 1:
			return n.taken
		default:
			return append(slices.Clone(n.taken), n.next)
		}
	}
	c.walk(withoutPasses(len(g.nodes), func(i int) bool { return g.nodes[i].op < 0 }, ways))
	c.loops()
	return c
}

// withoutPasses leads past branches that have only one way: most of those of a class, if each
// warp has its own code. Otherwise every class would know something at every branch.
func withoutPasses(n int, branch func(int) bool, ways func(int) []int) func(int) []int {
	target := slices.Repeat([]int{-1}, n) // of each node that a way has led to; -1: not known
	resolve := func(at int) int {
		var passed []int
		for target[at] < 0 && branch(at) && len(ways(at)) == 1 {
			target[at] = at // where an endless loop of branches stays
			passed = append(passed, at)
			at = ways(at)[0]
		}
		if target[at] >= 0 {
			at = target[at]
		}
		for _, p := range passed {
			target[p] = at
		}
		return at
	}
	return func(from int) []int {
		list := slices.Clone(ways(from))
		for i, to := range list {
			list[i] = resolve(to)
		}
		return list
	}
}

// walk finds the reached nodes in reverse postorder.
func (c *class) walk(ways func(int) []int) {
	type frame struct{ node, done int }
	c.edges[0] = ways(0)
	seen := make([]bool, len(c.edges))
	seen[0] = true
	for stack := []frame{{0, 0}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if top.done == len(c.edges[top.node]) {
			c.order = append(c.order, top.node)
			stack = stack[:len(stack)-1]
			continue
		}
		// The target of a branch is visited first: in the order, the code after the branch precedes it.
		to := c.edges[top.node][top.done]
		top.done++
		if !seen[to] {
			seen[to] = true
			c.edges[to] = ways(to)
			stack = append(stack, frame{to, 0})
		}
	}
	slices.Reverse(c.order)
	for i, n := range c.order {
		c.rank[n] = i
	}
}

// loops separates the edges that close loops from the others. What a warp knows when it
// enters a loop it knows in each round, so the edges that lead back to the only entry of a
// loop add nothing; at a node that is entered otherwise nothing is assumed.
func (c *class) loops() {
	c.all = make([][]int, len(c.edges))
	for _, from := range c.order {
		for _, to := range c.edges[from] {
			c.all[to] = append(c.all[to], from)
		}
	}
	dominator := c.dominators()
	for _, from := range c.order {
		for _, to := range c.edges[from] {
			if c.rank[to] > c.rank[from] {
				c.before[to] = append(c.before[to], from)
				continue
			}
			at := from
			for c.rank[at] > c.rank[to] {
				at = dominator[at]
			}
			c.blank[to] = c.blank[to] || at != to
		}
	}
	c.cycles()
}

// dominators finds, for each reached node, the last other node that all ways to it pass
// (Cooper, Harvey and Kennedy: A Simple, Fast Dominance Algorithm).
func (c *class) dominators() []int {
	dominator := slices.Repeat([]int{-1}, len(c.edges))
	dominator[0] = 0
	for changed := true; changed; {
		changed = false
		for _, n := range c.order[1:] {
			common := -1
			for _, p := range c.all[n] {
				if dominator[p] < 0 {
					continue
				}
				for common >= 0 && p != common {
					if c.rank[p] > c.rank[common] {
						p = dominator[p]
					} else {
						common = dominator[common]
					}
				}
				common = p
			}
			changed = changed || dominator[n] != common
			dominator[n] = common
		}
	}
	return dominator
}

// cycles finds the strongly connected components (Kosaraju's algorithm), and marks the
// nodes that are in loops.
func (c *class) cycles() {
	seen, stages := make([]bool, len(c.edges)), 0
	for _, root := range c.order {
		if seen[root] {
			continue
		}
		seen[root] = true
		members := []int{root}
		for i := 0; i < len(members); i++ {
			for _, p := range c.all[members[i]] {
				if !seen[p] {
					seen[p] = true
					members = append(members, p)
				}
			}
		}
		for _, n := range members {
			c.inCycle[n] = len(members) > 1 || slices.Contains(c.edges[n], n)
			c.stage[n] = stages
		}
		stages++
	}
}
