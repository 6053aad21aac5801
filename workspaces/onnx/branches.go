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
// not known. It can be out of the bounds of a graph: see [graph.Graph.Check].
func (m *Model) Graph() (g graph.Graph, unknown []string) {
	g.Name = shorten(m.Name)
	before, users := m.edges()
	branches, kinds := make([]int, len(m.nodes)), map[string]bool{}
	for i, n := range m.nodes {
		if n.op == "Constant" {
			continue
		}
		flops, known := m.work(n)
		if !known {
			kinds[shorten(n.op)] = true
		}
		// What moves data has a single operation, because 0 is an unknown number.
		o := graph.Operator{Name: fmt.Sprintf("%s %d", shorten(n.op), i+1)}
		if known {
			o.FLOPs = min(max(flops, 1), largest)
		}
		if len(before[i]) == 1 && users[before[i][0]] == 1 {
			branches[i] = branches[before[i][0]]
			b := &g.Branches[branches[i]]
			b.Operators = append(b.Operators, o)
			continue
		}
		b := graph.Branch{Name: o.Name, Operators: []graph.Operator{o}}
		after := map[int]bool{}
		for _, p := range before[i] {
			if at := branches[p]; !after[at] {
				after[at], b.After = true, append(b.After, g.Branches[at].Name)
			}
		}
		branches[i], g.Branches = len(g.Branches), append(g.Branches, b)
	}
	return g, slices.Sorted(maps.Keys(kinds))
}

// edges are the operators whose results each one uses, and how many use its own. Operators are
// in an order in which results are used after they are computed; others do not count.
func (m *Model) edges() (before [][]int, users []int) {
	before, users = make([][]int, len(m.nodes)), make([]int, len(m.nodes))
	makers := map[string]int{}
	for i, n := range m.nodes {
		seen := map[int]bool{}
		for _, name := range n.inputs {
			if p, known := makers[name]; known && name != "" && !seen[p] {
				seen[p], before[i] = true, append(before[i], p)
				users[p]++
			}
		}
		if n.op == "Constant" {
			continue
		}
		for _, name := range n.outputs {
			makers[name] = i
		}
	}
	return before, users
}

// shorten makes a name of somebody's file one that a graph can have.
func shorten(name string) string {
	runes := []rune(strings.Join(strings.Fields(models.VisibleName(name)), " "))
	if name = strings.TrimSpace(string(runes[:min(len(runes), 60)])); name == "" {
		return "operator"
	}
	return name
}
