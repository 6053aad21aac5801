package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/models"
	"weir/workspaces/graph"
)

// largest is the most operations of an operator in a graph.
const largest = 1e24

// Graph is the task graph of a model; unknown are the kinds of operators whose operations are
// not known. why says why there is none. The graph can be out of the bounds of one: see
// [graph.Graph.Check].
func (m *Model) Graph() (g graph.Graph, unknown []string, why models.Text) {
	chains, why := m.chains()
	if !why.Empty() {
		return g, nil, why
	}
	g.Name = shorten(m.Name)
	kinds := map[string]bool{}
	for _, c := range chains {
		var b graph.Branch
		for _, i := range c.nodes {
			o := graph.Operator{Name: m.operatorName(i), Kind: shorten(m.nodes[i].op)}
			if flops, known := m.work(m.nodes[i]); known {
				// What moves data has a single operation, because 0 is an unknown number.
				o.FLOPs = min(max(flops, 1), largest)
			} else {
				kinds[o.Kind] = true
			}
			b.Operators = append(b.Operators, o)
		}
		b.Name = b.Operators[0].Name
		for _, p := range c.after {
			b.After = append(b.After, g.Branches[p].Name)
		}
		g.Branches = append(g.Branches, b)
	}
	return g, slices.Sorted(maps.Keys(kinds)), why
}

// operatorName is what an operator is called in the graph, by its kind and its place in the file.
func (m *Model) operatorName(i int) string { return fmt.Sprintf("%s %d", shorten(m.nodes[i].op), i+1) }

// chain is the operators of a branch in the order in which they run, and the branches of which
// it uses results.
type chain struct{ nodes, after []int }

// chains are the branches. Each stands after those of which it uses results.
func (m *Model) chains() (chains []chain, why models.Text) {
	before, users := m.edges()
	order, circle := sorted(before)
	if circle >= 0 {
		return nil, models.Say("operator %d, %s, uses its own result: the model has a circle", circle+1, shorten(m.nodes[circle].op))
	}
	at := make([]int, len(m.nodes)) // chains
	for _, i := range order {
		if m.nodes[i].op == constant {
			continue
		}
		if len(before[i]) == 1 && users[before[i][0]] == 1 {
			at[i] = at[before[i][0]]
			chains[at[i]].nodes = append(chains[at[i]].nodes, i)
			continue
		}
		c, after := chain{nodes: []int{i}}, map[int]bool{}
		for _, p := range before[i] {
			if !after[at[p]] {
				after[at[p]], c.after = true, append(c.after, at[p])
			}
		}
		at[i], chains = len(chains), append(chains, c)
	}
	return chains, why
}

// constant are the operators that compute nothing and wait for nothing.
const constant = "Constant"

// edges are the operators whose results each one uses, and how many use its own. Of several
// that make a result of the same name, the last one before counts, else the first one after.
func (m *Model) edges() (before [][]int, users []int) {
	before, users = make([][]int, len(m.nodes)), make([]int, len(m.nodes))
	makers, later := map[string]int{}, map[string][]int{}
	for i, n := range m.nodes {
		if n.op == constant {
			continue
		}
		for _, name := range n.inputs {
			if p, known := makers[name]; known {
				before[i] = append(before[i], p)
			} else if name != "" {
				later[name] = append(later[name], i)
			}
		}
		for _, name := range n.outputs {
			if name == "" {
				continue
			}
			makers[name] = i
			for _, user := range later[name] {
				before[user] = append(before[user], i)
			}
			delete(later, name)
		}
	}
	for i := range before {
		slices.Sort(before[i])
		before[i] = slices.Compact(before[i])
		for _, p := range before[i] {
			users[p]++
		}
	}
	return before, users
}

// sorted are operators in an order in which results are used after they are computed: that of
// the file, unless one uses the result of a later one. circle is one that uses its own result,
// also by way of others; -1 if there is none.
func sorted(before [][]int) (order []int, circle int) {
	const unseen, open, done = 0, 1, 2
	state, order := make([]int, len(before)), make([]int, 0, len(before))
	next := make([]int, len(before)) // of before, for those that are open
	for i := range before {
		for path := []int{i}; len(path) > 0; {
			at := path[len(path)-1]
			switch {
			case state[at] == done:
				path = path[:len(path)-1]
			case next[at] == len(before[at]):
				state[at], order, path = done, append(order, at), path[:len(path)-1]
			default:
				state[at] = open
				p := before[at][next[at]]
				next[at]++
				if state[p] == open {
					return nil, p
				}
				if state[p] == unseen {
					path = append(path, p)
				}
			}
		}
	}
	return order, -1
}

// shorten makes a name of somebody's file one that a graph can have.
func shorten(name string) string {
	runes := []rune(strings.Join(strings.Fields(models.VisibleName(name)), " "))
	if name = strings.TrimSpace(string(runes[:min(len(runes), 60)])); name == "" {
		return "operator"
	}
	return name
}
