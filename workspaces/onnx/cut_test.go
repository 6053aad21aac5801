package onnx

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"weir/workspaces/onnx/onnxtest"
)

// Each branch is a model with its operators, the initializers and constants that these use, and
// the values that other branches or the user need.
func TestParts(t *testing.T) {
	content := vision()
	m := read(t, content)
	m.outputs = []string{"z", "sum"}
	parts, why := m.Parts()
	if !why.Empty() || len(parts) != 4 {
		t.Fatal(parts, why)
	}
	for i, want := range []string{
		"Conv Relu [w b] [x] [r]", "Conv Relu [l] [r] [l1]", "MaxPool [] [r] [right]",
		"Add GlobalAveragePool Flatten Gemm Strange [fc] [l1 right] [sum z]",
	} {
		var file bytes.Buffer
		if err := m.WritePart(&file, bytes.NewReader(content), parts[i]); err != nil {
			t.Fatal(err)
		}
		written := read(t, file.Bytes())
		var got, stored []string
		for _, n := range written.nodes {
			got = append(got, n.op)
		}
		for _, w := range written.Tensors {
			stored = append(stored, w.Name)
		}
		line := fmt.Sprint(strings.Join(got, " "), " ", stored, " ", parts[i].Inputs, " ", parts[i].Outputs)
		if line != want || len(written.header) != len(m.header) || len(written.inputs)+len(written.outputs) > 0 {
			t.Errorf("%s, want %s", line, want)
		}
	}
}

// A model that cannot be cut is refused with the reason.
func TestPartsOfOthers(t *testing.T) {
	value := message{}.Bytes(1, []byte("y"))
	of := func(nodes ...[]byte) message {
		var g message
		for _, n := range nodes {
			g = g.Bytes(1, n)
		}
		return g.Bytes(11, onnxtest.Value("x", 1)).Bytes(12, value)
	}
	external := message{}.Number(1, 1).Number(2, 1).Bytes(8, []byte("w")).Number(14, 1)
	for says, g := range map[string]message{
		"has graphs of its own":      of(operator("If", "x -> y", message{}.Bytes(1, []byte("then_branch")).Bytes(6, nil))),
		"two operators compute y":    of(operator("Relu", "x -> y"), operator("Abs", "x -> y")),
		"are in another file":        of(operator("Add", "x w -> y")).Bytes(5, external),
		"uses w, which nothing":      of(operator("Add", "x w -> y")),
		"no operator computes the":   of(operator("Relu", "x -> z")),
		"computes the result y":      of(operator("Relu", "x -> z"), operator("Constant", "-> y")),
		"uses its own result: the m": of(operator("Add", "x z -> y"), operator("Add", "x y -> z")),
	} {
		m := read(t, onnxtest.Model(g))
		if parts, why := m.Parts(); !strings.Contains(why.String(), says) {
			t.Errorf("%v, %q, want %q", parts, why, says)
		}
	}
	m := read(t, onnxtest.Model(of(operator("Constant", "-> c"), operator("Add", "x c -> y"))))
	if parts, why := m.Parts(); !why.Empty() || len(parts) != 1 || len(parts[0].nodes) != 2 || len(parts[0].Inputs) != 1 {
		t.Errorf("a constant: %+v, %v", parts, why)
	}
}
