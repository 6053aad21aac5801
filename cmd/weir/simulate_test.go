package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/cmd/weir/cli"
)

var updateGolden = flag.Bool("update", false, "write the golden files anew")

// speeds are what differs from run to run.
var speeds = regexp.MustCompile(`("(?:decisions_per_second|microseconds_per_decision(?:_at_scale)?)":)[0-9.e+-]+`)

func simulate(args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	files := []string{"simulate", "placement", "--nodes", "testdata/simulate/nodes.csv", "--pods", "testdata/simulate/pods.csv"}
	code = weir(append(files, args...), &o, &e)
	return code, o.String(), e.String()
}

func TestSimulateGolden(t *testing.T) {
	code, out, errOut := simulate("--policy", "all", "--seeds", "42-44,7", "--inflate", "1.3", "--output", "json")
	if code != cli.ExitOK || errOut != "" || !json.Valid([]byte(out)) {
		t.Fatalf("exit code %d, says %s, prints %s", code, errOut, out)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(speeds.ReplaceAllString(out, "${1}0")), "", "  "); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "simulate", "golden.json")
	if *updateGolden {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got %s", b.String())
	}
}

func TestSimulateTable(t *testing.T) {
	code, out, errOut := simulate("--policy", "fgd,weir", "--scale", "1", "--inflate", "1")
	if code != cli.ExitOK || errOut != "" {
		t.Fatalf("exit code %d, says %s", code, errOut)
	}
	for _, word := range []string{"4 machines, 20 GPUs, 10 seeds", "fgd", "weir", "110%", "–"} {
		if !strings.Contains(out, word) {
			t.Errorf("no %q in %s", word, out)
		}
	}
}

func TestSimulateRefuses(t *testing.T) {
	bad := func(text string) string {
		file := filepath.Join(t.TempDir(), "bad.csv")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	negative := bad("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,0\nb,-5,1,0,0\n")
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"--policy nosuch", cli.ExitUsage, []string{`unknown policy "nosuch"`, "weir, or all"}},
		{"--seeds x --inflate 0 --output xml --scale 0 --nodes=", cli.ExitUsage, []string{"--seeds", "--inflate", "--output", "--scale", "--nodes"}},
		{"--seeds 5-1", cli.ExitUsage, []string{"5-1"}},
		{"--seeds 1,1", cli.ExitUsage, []string{"seed 1 is listed more than once"}},
		{"--seeds 0-99999999", cli.ExitUsage, []string{"at most 10000 seeds"}},
		{"--seeds 0-9223372036854775807", cli.ExitUsage, []string{"at most 10000 seeds"}},
		{"--seeds 9223372036854775807", cli.ExitOK, nil},
		{"--seeds=-3", cli.ExitUsage, []string{"-3"}},
		{"--inflate NaN", cli.ExitUsage, []string{"--inflate"}},
		{"extra", cli.ExitUsage, []string{"extra"}},
		{"--pods " + negative, cli.ExitError, []string{negative + ":3: cpu_milli: -5 is negative"}},
		{"--pods " + bad(""), cli.ExitError, []string{"the file is empty"}},
		{"--pods /does/not/exist", cli.ExitError, []string{"/does/not/exist"}},
		{"--nodes testdata/simulate/pods.csv", cli.ExitError, []string{"pods.csv:1: there is no column gpu, model"}},
	} {
		code, out, errOut := simulate(append([]string{"--scale", "1"}, strings.Fields(c.args)...)...)
		missing := slices.ContainsFunc(c.says, func(word string) bool { return !strings.Contains(errOut, word) })
		if code != c.code || missing || code != cli.ExitOK && out != "" {
			t.Errorf("weir simulate placement %s: exit code %d, want %d; prints %q, says %s", c.args, code, c.code, out, errOut)
		}
	}
}
