package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"weir/cmd/weir/cli"
	"weir/models"
)

const exampleGraph = `
name: example
branches:
  - {name: a, operators: [{command: "echo a on $OMP_NUM_THREADS", seconds: 50}]}
  - {name: b, operators: [{name: last, command: "echo b >&2; exit $CODE", seconds: 60}]}
`

// graphFile writes a graph, and returns its path and what runs a command about it.
func graphFile(t *testing.T, text string) (string, func(want int, args ...string) (out, errOut string)) {
	file := filepath.Join(t.TempDir(), "graph.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, func(want int, args ...string) (string, string) {
		t.Helper()
		var out, errOut strings.Builder
		if code := cli.Run(newRootCommand(), append([]string{"graph"}, args...), &out, &errOut); code != want {
			t.Fatalf("%v: exit code %d, want %d: %s", args, code, want, &errOut)
		}
		return out.String(), errOut.String()
	}
}

func TestGraphPlan(t *testing.T) {
	file, run := graphFile(t, exampleGraph)
	out, _ := run(0, "plan", file, "--cpus", "8", "--utilization", "0.7")
	for _, text := range []string{"Utilization 70% is between the thresholds, 50% and 70%: branches share 30% of 6 CPUs, 1.8, rounded to 2.",
		"1      a       50.00 s", "0.98   1 (1)", "Planned: 60.00 s. One operator after another on one CPU: 110.00 s. Equal shares: 60.00 s."} {
		if !strings.Contains(out, text) {
			t.Errorf("%q in:\n%s", text, out)
		}
	}
	out, _ = run(0, "plan", file, "--cpus", "8", "--utilisation", "0.4", "--output", "json")
	var p models.GraphPlan
	if err := json.Unmarshal([]byte(out), &p); err != nil || p.Mode != models.GraphParallel || p.Budget != 5 || len(p.Stages[0].Shares[1].CPUs) != 3 {
		t.Errorf("got %s: %v", out, err)
	}
	out, _ = run(0, "plan", file, "--output", "json")
	if err := json.Unmarshal([]byte(out), &p); err != nil || p.CPUs != usable(runtime.NumCPU()) || p.Utilization < 0 || p.Utilization > 100 {
		t.Errorf("this machine: %s: %v", out, err)
	}
	if err := os.WriteFile(strings.TrimSuffix(file, ".yaml")+".times.yaml", []byte("a: {1: 10}\nb: {last: 70}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ = run(0, "plan", file, "--cpus", "8", "--utilization", "0"); !strings.Contains(out, "One operator after another on one CPU: 80.00 s.") {
		t.Errorf("the measured times are not used:\n%s", out)
	}
	for flag, says := range map[string]string{
		"--utilization=2": "--utilization: must be from 0% to 100%", "--first-threshold=0.4": "--second-threshold: must be less than the first threshold, 40%",
		"--reduced-cpus=8": "--reduced-cpus: must be from 1 to 7", "--serial-cpus=0": "--serial-cpus: must not be 0", "--cpus=1025": "--cpus: must be from 1 to 1024",
		"--utilization=x": "invalid argument",
	} {
		if _, text := run(2, "plan", file, "--cpus", "8", flag); !strings.Contains(text, says) {
			t.Errorf("%s: %s", flag, text)
		}
	}
	run(1, "plan", file+".missing")
	bad, run := graphFile(t, "branches: [{name: a}]")
	if _, text := run(1, "plan", bad); !strings.Contains(text, "graph.yaml: branch a has no operators") {
		t.Errorf("got %s", text)
	}
}

// A graph runs, its output says of which branch it is, and the next plan uses what was
// measured. The exit code is that of the operator that fails.
func TestGraphRun(t *testing.T) {
	t.Setenv("CODE", "0")
	file, run := graphFile(t, exampleGraph)
	out, errOut := run(0, "run", file)
	if !strings.HasPrefix(out, "a | a on ") || !strings.Contains(errOut, "b | b\n") || !strings.Contains(errOut, "weir: b/last has ended") {
		t.Errorf("got %q, %q", out, errOut)
	}
	times := strings.TrimSuffix(file, ".yaml") + ".times.yaml"
	measured, err := os.ReadFile(times)
	if err != nil || !strings.Contains(string(measured), "b:\n    last: 0.") {
		t.Errorf("measured: %s: %v", measured, err)
	}
	if out, _ := run(0, "plan", file); strings.Contains(out, "50.00 s") {
		t.Errorf("the next plan does not use them:\n%s", out)
	}
	t.Setenv("CODE", "7")
	own := filepath.Join(t.TempDir(), "own.yaml")
	if _, errOut := run(7, "run", file, "--times", own, "--cpus", "1", "--utilization", "0"); !strings.Contains(errOut, "weir: b/last: exit code 7") {
		t.Errorf("got %q", errOut)
	}
	if b, err := os.ReadFile(own); err != nil || strings.Contains(string(b), "last") {
		t.Errorf("measured: %s: %v", b, err)
	}
	run(2, "run", file, "--interval", "1ms")
	run(2, "run", file, "--cpus", "1024")
}

// A signal to the command is the operators'.
func TestGraphRunForwardsSignals(t *testing.T) {
	dir := t.TempDir()
	file, run := graphFile(t, `branches: [{name: a, operators: [{command: "trap 'exit 9' TERM; cd `+dir+`; touch runs; while :; do sleep 0.01; done"}, {command: "touch never"}]}]`)
	go func() {
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if _, err := os.Stat(filepath.Join(dir, "runs")); err == nil {
				_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
				return
			}
		}
	}()
	if _, errOut := run(9, "run", file); !strings.Contains(errOut, "a/1: exit code 9") {
		t.Errorf("got %q", errOut)
	}
}

// A model in ONNX format is planned, and what has no formula is named.
func TestGraphPlanONNX(t *testing.T) {
	var graph []byte
	add := func(to []byte, n protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(to, n, protowire.BytesType), content)
	}
	for _, o := range [][3]string{{"Split", "x", "y"}, {"Relu", "y", "a"}, {"Strange", "y", "b"}, {"Add", "a", "z"}} {
		node := add(add(add(nil, 1, []byte(o[1])), 2, []byte(o[2])), 4, []byte(o[0]))
		if o[0] == "Add" {
			node = add(node, 1, []byte("b"))
		}
		graph = add(graph, 1, node)
	}
	_, run := graphFile(t, "")
	file := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(file, add(nil, 7, graph), 0o600); err != nil {
		t.Fatal(err)
	}
	out, told := run(0, "plan", file, "--cpus", "8", "--utilization", "0")
	if !strings.Contains(out, "Times are ratios") || !strings.Contains(out, "Relu 2 Strange 3") || !strings.Contains(told, "not all operations are known of Add, Relu, Strange") {
		t.Errorf("got %s%s", out, told)
	}
	if err := os.WriteFile(file, []byte("branches: []"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, text := run(1, "plan", file); !strings.Contains(text, "model.onnx: it is not a model in ONNX format") {
		t.Errorf("got %s", text)
	}
}
