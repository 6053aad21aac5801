package execution

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/workspaces/graph"
	"weir/workspaces/graph/journal"
	"weir/workspaces/graph/runner"
	"weir/workspaces/onnx/onnxtest"
)

// python is Debian's, which has OpenCV.
const python = "/usr/bin/python3"

// model writes the network and an image into a new directory.
func model(t *testing.T) (dir string, image []float32) {
	t.Helper()
	dir, image = t.TempDir(), onnxtest.Image()
	for name, content := range map[string][]byte{"network.onnx": onnxtest.Network(), "image.npy": onnxtest.Array(image, 1, 2, onnxtest.Side, onnxtest.Side)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, image
}

// run runs the graph of an execution on 2 CPUs.
func run(t *testing.T, e Execution) (runner.Result, string) {
	t.Helper()
	var said bytes.Buffer
	machine := graph.Machine(2)
	result, err := runner.Run(t.Context(), runner.Config{Graph: e.Graph, CPUs: 2, Fixed: true, Attempt: "test", Now: time.Now,
		Sample: func(time.Duration) ([]graph.CPU, float64, error) { return machine, 0, nil },
		Record: func(journal.Event) error { return nil }, Out: io.Discard, Errors: &said, Notes: func(text string) { fmt.Fprintln(&said, text) }})
	if err != nil {
		t.Fatal(err)
	}
	return result, said.String()
}

// The branches of a model compute what the model does, in processes of their own.
func TestBranchesComputeTheModel(t *testing.T) {
	dir, image := model(t)
	e, err := Prepare(Config{Model: filepath.Join(dir, "network.onnx"), Inputs: map[string]string{"": filepath.Join(dir, "image.npy")},
		Results: filepath.Join(dir, "results"), Python: python})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	t.Log(e.Runtime)
	if len(e.Graph.Branches) != 4 || len(e.Unknown) > 0 || e.Graph.Branches[1].Operators[0].FLOPs != 2*2*2*onnxtest.Side*onnxtest.Side+2*onnxtest.Side*onnxtest.Side {
		t.Errorf("%+v, %v", e.Graph, e.Unknown)
	}
	if result, said := run(t, e); result.Code != 0 {
		t.Fatalf("exit code %d: %s", result.Code, said)
	}
	got, err := os.ReadFile(filepath.Join(dir, "results", "classes.npy"))
	if err != nil {
		t.Fatal(err)
	}
	want := onnxtest.Classes(image)
	if !bytes.Equal(got, onnxtest.Array(want[:], 1, 3)) {
		t.Errorf("%q, want %v", got, want)
	}
	if err := e.Finish(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "results")); err != nil || len(left) != 2 { // and the lock
		t.Errorf("left: %v, %v", left, err)
	}
}

// Results of a branch are those of their names, in whatever order these are.
func TestBranchOfSeveralResults(t *testing.T) {
	dir, image := model(t)
	axis := onnxtest.Message{}.Bytes(1, []byte("axis")).Number(3, 1).Number(20, 2)
	var g onnxtest.Message
	for _, n := range [][]byte{
		onnxtest.Operator("Relu", "image -> r"), onnxtest.Operator("Split", "r -> z a", axis),
		onnxtest.Operator("Relu", "z -> z1"), onnxtest.Operator("Relu", "a -> a1"), onnxtest.Operator("Sub", "z1 a1 -> difference"),
	} {
		g = g.Bytes(1, n)
	}
	g = g.Bytes(2, []byte("two")).Bytes(11, onnxtest.Value("image", 1, 2, onnxtest.Side, onnxtest.Side)).Bytes(12, onnxtest.Value("difference", 1, 1, onnxtest.Side, onnxtest.Side))
	if err := os.WriteFile(filepath.Join(dir, "two.onnx"), onnxtest.Model(g), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Config{Model: filepath.Join(dir, "two.onnx"), Inputs: map[string]string{"image": filepath.Join(dir, "image.npy")}, Results: filepath.Join(dir, "results"), Python: python}
	stale := filepath.Join(c.Results, "difference.npy")
	if err := errors.Join(os.Mkdir(c.Results, 0o700), os.WriteFile(stale, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	e, err := Prepare(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	if _, err := Prepare(c); err == nil || !strings.Contains(err.Error(), "another process writes its results") {
		t.Errorf("twice at a time: %v", err)
	}
	if err := e.Finish(); err == nil || !strings.Contains(err.Error(), "a result is missing") {
		t.Errorf("before it ran: %v", err)
	}
	if result, said := run(t, e); result.Code != 0 {
		t.Fatalf("exit code %d: %s", result.Code, said)
	}
	const plane = onnxtest.Side * onnxtest.Side
	want := make([]float32, plane)
	for i := range want {
		want[i] = max(image[i], 0) - max(image[plane+i], 0)
	}
	got, err := os.ReadFile(filepath.Join(dir, "results", "difference.npy"))
	if err != nil || !bytes.Equal(got, onnxtest.Array(want, 1, 1, onnxtest.Side, onnxtest.Side)) {
		t.Errorf("%q, %v, want %v", got, err, want)
	}
	if err := e.Finish(); err != nil {
		t.Error(err)
	}
}
