package onnx

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/workspaces/graph"
	"weir/workspaces/onnx/onnxtest"
)

type message = onnxtest.Message

var ints, operator, weights, value = onnxtest.Ints, onnxtest.Operator, onnxtest.Weights, onnxtest.Value

// vision is a network that forks after its first convolution and joins before its pooling.
func vision() []byte {
	var g message
	for _, n := range [][]byte{operator("Conv", "x w b -> c", ints("strides", 2, 2), ints("pads", 1, 1, 1, 1)), operator("Relu", "c -> r"),
		operator("Conv", "r l -> left"), operator("Relu", "left -> l1"), operator("MaxPool", "r -> right", ints("kernel_shape", 1, 1)),
		operator("Add", "l1 right -> sum"), operator("GlobalAveragePool", "sum -> p"), operator("Flatten", "p -> f"),
		operator("Gemm", "f fc -> y", message{}.Bytes(1, []byte("transB")).Number(3, 1)), operator("Strange", "y -> z")} {
		g = g.Bytes(1, n)
	}
	g = g.Bytes(2, []byte("vision")).Bytes(5, weights("w", 8, 3, 3, 3)).Bytes(5, weights("b", 8)).Bytes(5, weights("l", 8, 8, 1, 1)).Bytes(5, weights("fc", 10, 8))
	return message{}.Number(1, 8).Bytes(7, g.Bytes(11, value("x", 0, 3, 32, 32)))
}

func read(t testing.TB, content []byte) Model {
	t.Helper()
	m, why, err := Read(bytes.NewReader(content), int64(len(content)))
	if err != nil || !why.Empty() {
		t.Fatal(why, err)
	}
	return m
}

// Branches are those between fork and join, and operations those of the documented formulas.
func TestGraph(t *testing.T) {
	m := read(t, vision())
	g, unknown, why := m.Graph()
	if err := g.Check(); err != nil || !why.Empty() || g.Name != "vision" || !slices.Equal(unknown, []string{"Strange"}) {
		t.Errorf("%+v, %v, %v", g, unknown, err)
	}
	var got []string
	for _, b := range g.Branches {
		line := fmt.Sprint(b.After)
		for _, o := range b.Operators {
			line += fmt.Sprintf(" %s=%.0f", o.Name, o.FLOPs)
		}
		got = append(got, line)
	}
	want := []string{
		"[] Conv 1=112640 Relu 2=2048", // 8·16·16 values: 2·2048·3·3·3 + 2048
		"[Conv 1] Conv 3=32768 Relu 4=2048",
		"[Conv 1] MaxPool 5=2048",
		"[Conv 3 MaxPool 5] Add 6=2048 GlobalAveragePool 7=2048 Flatten 8=1 Gemm 9=160 Strange 10=0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if len(m.Tensors) != 4 || m.Tensors[3].Name != "fc" || !slices.Equal(m.Tensors[3].Shape, []int64{10, 8}) || m.Tensors[3].Until-m.Tensors[3].From != 4*80 {
		t.Errorf("%+v", m.Tensors)
	}
}

// Sizes follow from attributes and inputs.
func TestShapes(t *testing.T) {
	text := func(name, s string) []byte { return message{}.Bytes(1, []byte(name)).Bytes(4, []byte(s)) }
	for _, c := range []struct {
		node  []byte
		x, w  []int64
		flops float64
	}{
		{operator("Conv", "x w -> y", text("auto_pad", "SAME_UPPER"), ints("strides", 2, 2)), []int64{1, 4, 9, 9}, []int64{8, 2, 3, 3}, 2 * 8 * 25 * 2 * 9},
		{operator("Conv", "x w -> y", ints("dilations", 2, 2)), []int64{1, 1, 5, 5}, []int64{1, 1, 3, 3}, 2 * 9},
		{operator("ConvTranspose", "x w -> y"), []int64{1, 2, 3}, []int64{2, 5, 4}, 0}, // the result's shape is not known
		{operator("MaxPool", "x -> y", ints("kernel_shape", 2), ints("strides", 2), ints("ceil_mode", 1)), []int64{1, 1, 5}, nil, 3 * 2},
		{operator("MatMul", "x w -> y"), []int64{3, 4, 5}, []int64{5, 6}, 2 * 3 * 4 * 6 * 5},
		{operator("Gemm", "x w w -> y", ints("transA", 1)), []int64{5, 4}, []int64{5, 6}, 2*4*6*5 + 24},
		{operator("Add", "x w -> y"), []int64{2, 1, 4}, []int64{3, 1}, 24},
		{operator("Softmax", "x -> y"), []int64{2, 5}, nil, 50},
	} {
		m := read(t, message{}.Bytes(7, message{}.Bytes(1, c.node).Bytes(11, value("x", c.x...)).Bytes(5, weights("w", c.w...))))
		if g, unknown, _ := m.Graph(); g.Branches[0].Operators[0].FLOPs != c.flops || (len(unknown) > 0) != (c.flops == 0) {
			t.Errorf("%s: %+v, %v, want %g", m.nodes[0].op, g, unknown, c.flops)
		}
	}
}

// What is no model, or too large, is refused; weights are not read.
func TestReadRefuses(t *testing.T) {
	whole := vision()
	many := message{}
	for range maxNodes + 1 {
		many = many.Bytes(1, nil)
	}
	for name, content := range map[string][]byte{"empty": {}, "text": []byte("branches: []"), "truncated": whole[:len(whole)-1],
		"two graphs": slices.Concat(whole, whole), "without operators": message{}.Bytes(7, nil), "a group": {0x0b}, "many": message{}.Bytes(7, many),
		"a long name": message{}.Bytes(7, message{}.Bytes(2, make([]byte, maxText+1)).Bytes(1, operator("Relu", "x -> y")))} {
		if _, why, err := Read(bytes.NewReader(content), int64(len(content))); why.Empty() || err != nil {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
	if _, _, err := Read(broken{}, 10); err == nil {
		t.Error("a file that cannot be read is taken")
	}
}

type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, fmt.Errorf("input/output error") }

// Whatever the file, it is refused or gives a graph whose branches wait only for earlier ones.
func FuzzRead(f *testing.F) {
	f.Add(vision())
	f.Add([]byte{0x3a, 0x02, 0x0a, 0x00})
	f.Fuzz(func(t *testing.T, content []byte) {
		m, why, err := Read(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		if !why.Empty() {
			return
		}
		g, _, why := m.Graph()
		if !why.Empty() {
			return
		}
		known := map[string]bool{}
		for _, b := range g.Branches {
			for _, name := range b.After {
				if !known[name] {
					t.Errorf("%s waits for %s", b.Name, name)
				}
			}
			known[b.Name] = true
		}
		if err := g.Check(); err != nil && len(g.Branches) > 0 && len(g.Branches) <= graph.MaxBranches && !strings.Contains(err.Error(), "operators") {
			t.Errorf("%v: %+v", err, g)
		}
	})
}
