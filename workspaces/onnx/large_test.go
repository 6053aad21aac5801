package onnx

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"weir/models"
	"weir/workspaces/graph"
)

// modelOf is a model of operators and values.
func modelOf(nodes [][]byte, values ...[]byte) []byte {
	var g message
	for _, n := range nodes {
		g = g.Bytes(1, n)
	}
	for _, v := range values {
		g = g.Bytes(11, v)
	}
	return message{}.Bytes(7, g)
}

// planOf plans a model on 64 CPUs.
func planOf(t *testing.T, content []byte, utilization float64) (graph.Graph, models.GraphPlan, error) {
	t.Helper()
	m := read(t, content)
	g, _, why := m.Graph()
	if !why.Empty() {
		return g, models.GraphPlan{}, models.Invalid("graph", "%s", why)
	}
	p, err := graph.Plan(g, graph.Machine(64), graph.Settings{Utilization: utilization})
	return g, p, err
}

// transformer is n operators in layers that fork into three branches and join again.
func transformer(n int) (nodes [][]byte) {
	at := "x"
	for i := 0; len(nodes) < n; i++ {
		name := func(s string) string { return fmt.Sprintf("%s%d", s, i) }
		nodes = append(nodes, operator("MatMul", at+" wq -> "+name("q")), operator("MatMul", at+" wk -> "+name("k")), operator("MatMul", at+" wv -> "+name("v")),
			operator("Relu", name("v")+" -> "+name("r")), operator("Sum", name("q")+" "+name("k")+" "+name("r")+" -> "+name("s")))
		at = name("s")
	}
	return nodes[:n]
}

// Models of 50,000 operators are planned, whatever their form, and larger ones refused with
// the number.
func TestLargeModels(t *testing.T) {
	chain, fan, ladder := make([][]byte, 50_000), make([][]byte, 50_000), make([][]byte, 50_000)
	for i := range chain {
		chain[i] = operator("Relu", fmt.Sprintf("x%d -> x%d", i, i+1))
		fan[i] = operator("Relu", fmt.Sprintf("x -> y%d", i))
		ladder[i] = operator("Add", fmt.Sprintf("x%d x%d -> x%d", i, max(i-1, 0), i+1)) // each a branch of its own
	}
	reversed := make([][]byte, len(chain))
	for i, n := range chain {
		reversed[len(chain)-1-i] = n
	}
	x := value("x", 4, 4)
	for name, c := range map[string]struct {
		nodes    [][]byte
		branches int
	}{"layers": {transformer(50_000), 1 + 3*10_000 + 10_000 - 1}, "a chain": {chain, 1}, "a fan": {fan, 50_000}, "a ladder": {ladder, 50_000}, "a chain backwards": {reversed, 1}} {
		g, p, err := planOf(t, modelOf(c.nodes, x), 0.9)
		operators := 0
		for _, b := range g.Branches {
			operators += len(b.Operators)
		}
		if operators != 50_000 || len(g.Branches) != c.branches && name != "layers" {
			t.Errorf("%s: %d operators in %d branches", name, operators, len(g.Branches))
		}
		// One after another, each of 50,000 branches would name 32 CPUs.
		if tooLong := c.branches*32 > 1_000_000; (err != nil) != tooLong || tooLong && !strings.Contains(err.Error(), "more than 1000000 times") {
			t.Errorf("%s one after another: %v", name, err)
		}
		if p, err = graph.Plan(g, graph.Machine(64), graph.Settings{Utilization: 0.4}); name == "a fan" && (err != nil || len(p.Stages) != 1316) || name == "a chain" && len(p.Stages) != 1 {
			t.Errorf("%s: %d stages: %v", name, len(p.Stages), err)
		}
	}
	if _, _, err := planOf(t, modelOf(append(chain, operator("Relu", "x -> y"))), 0); err == nil || !strings.Contains(err.Error(), "at most 50000 operators; has 50001") {
		t.Errorf("one more: %v", err)
	}
}

// Models that are meant to do harm are refused or planned.
func TestHostileModels(t *testing.T) {
	inputs := func(n int) string {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, "y%d ", i)
		}
		return all.String()
	}
	var dense [][]byte
	for i := range 1000 {
		dense = append(dense, operator("Sum", inputs(i)+"x -> "+fmt.Sprintf("y%d", i)))
	}
	huge := []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
	for name, c := range map[string]struct {
		content []byte
		says    string
	}{
		"a circle":          {modelOf([][]byte{operator("Relu", "a -> b"), operator("Add", "b c -> d"), operator("Relu", "d -> a")}), "uses its own result: the model has a circle"},
		"its own result":    {modelOf([][]byte{operator("Relu", "a -> a")}), "operator 1, Relu, uses its own result"},
		"many dependencies": {modelOf(dense), "must wait for others at most 200000 times"},
		"only constants":    {modelOf([][]byte{operator("Constant", "-> c")}), "must have from 1 to 50000 branches; has 0"},
		"huge dimensions":   {modelOf([][]byte{operator("MatMul", "x x -> y"), operator("Softmax", "y -> z"), operator("Concat", "z z -> c"), operator("GlobalMaxPool", "c -> p")}, value("x", huge...)), ""},
		"a result twice":    {modelOf([][]byte{operator("Relu", "x -> y"), operator("Relu", "y -> y"), operator("Relu", "y -> z")}), ""},
	} {
		g, p, err := planOf(t, c.content, 0)
		if c.says == "" && (err != nil || len(p.Stages) == 0) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q; %v", name, err, c.says, g)
		}
	}
}

// Elements have the sizes of their types; those of less than a byte are packed.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		kind    int64
		name    string
		n       int64
		raw     int64
		bytes   int64
		refused bool
	}{
		{1, "F32", 3, 12, 12, false}, {14, "C64", 3, 24, 24, false}, {15, "C128", 3, 48, 48, false}, {16, "BF16", 3, 6, 6, false},
		{17, "F8_E4M3", 3, 3, 3, false}, {18, "F8_E4M3FNUZ", 3, 0, 3, false}, {19, "F8_E5M2", 3, 3, 3, false}, {20, "F8_E5M2FNUZ", 3, 3, 3, false},
		{21, "U4", 3, 2, 2, false}, {22, "I4", 5, 3, 3, false}, {22, "I4", 4, 3, 0, true}, {23, "F4", 1, 1, 1, false}, {24, "F8_E8M0", 3, 3, 3, false},
		{25, "U2", 5, 2, 2, false}, {8, "STRING", 2, 0, 7, false}, {8, "STRING", 2, 1, 0, true}, {99, "", 2, 0, 0, true}, {15, "C128", math.MaxInt64, 0, 0, true}, {22, "I4", 1 << 60, 0, 1 << 59, false},
	} {
		tensor := message{}.Number(1, c.n).Number(2, c.kind).Bytes(8, []byte("t"))
		if c.raw > 0 {
			tensor = tensor.Bytes(9, make([]byte, c.raw))
		}
		if c.kind == text {
			tensor = tensor.Bytes(6, []byte("cat")).Bytes(6, []byte("fish"))
		}
		m := read(t, message{}.Bytes(7, message{}.Bytes(1, operator("Relu", "x -> y")).Bytes(5, tensor)))
		values, bytes, ok := m.Tensors[0].Size()
		if ok == c.refused || ok && (values != c.n || bytes != c.bytes) || m.Tensors[0].TypeName() != c.name {
			t.Errorf("%s: %d values, %d bytes, %t, %q", c.name, values, bytes, ok, m.Tensors[0].TypeName())
		}
	}
}
