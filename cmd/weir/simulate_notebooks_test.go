package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/cmd/weir/cli"
)

func simulateNotebooks(args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = weir(append([]string{"simulate", "notebooks"}, args...), &o, &e)
	return code, o.String(), e.String()
}

func TestSimulateNotebooksOfATrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.csv")
	trace := "session,submit_s,duration_s,gpus\na,0,600,1\na,3600,600,1\nb,300,600,1\nbig,0,60,9\n"
	if err := os.WriteFile(file, []byte(trace), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := simulateNotebooks("--trace", file, "--gpus", "2", "--idle", "2m", "--output", "json")
	var report notebookReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != cli.ExitOK || errOut != "" {
		t.Fatalf("exit code %d, %v, says %s, prints %s", code, err, errOut, out)
	}
	if report.Sessions != 3 || report.GPUs != 2 || len(report.Policies) != 4 {
		t.Errorf("%+v", report)
	}
	for _, p := range report.Policies {
		if p.Tasks != 3 || p.LeftOut != 1 {
			t.Errorf("%+v", p)
		}
	}
	code, out, _ = simulateNotebooks("--trace", file, "--gpus", "2")
	for _, word := range []string{"3 sessions (" + file, "reservation", "idle-cull", "batch", "weir", "than the pool has: 1"} {
		if code != cli.ExitOK || !strings.Contains(out, word) {
			t.Errorf("exit code %d, no %q in %s", code, word, out)
		}
	}
}

// On sessions like those that are published, GPUs that are held only while they are used
// suffice for a pool of half the size: the claim of the documentation.
func TestSimulateGeneratedNotebooks(t *testing.T) {
	code, out, errOut := simulateNotebooks("--output", "json")
	var report notebookReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != cli.ExitOK {
		t.Fatalf("exit code %d, %v, says %s", code, err, errOut)
	}
	if weir, reserved := report.Policies[3], report.Policies[0]; weir.Held > 0.4*reserved.Held || weir.AtOnce < 0.9 {
		t.Errorf("%+v beside %+v", weir, reserved)
	}
}

func TestSimulateNotebooksRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"--gpus -1 --idle 25h --output xml":  "--gpus: -1 must be",
		"--sessions 0":                       "--sessions: 0 must be",
		"--idle -1s":                         "--idle: -1s must be",
		"--trace testdata/none --sessions 5": "--sessions: cannot be used with --trace",
		"--output xml":                       `"xml" must be table or json`,
	} {
		if code, _, errOut := simulateNotebooks(strings.Fields(args)...); code != cli.ExitUsage || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d, says %s", args, code, errOut)
		}
	}
	if code, _, errOut := simulateNotebooks("--trace", "testdata/none.csv"); code != cli.ExitError || !strings.Contains(errOut, "none.csv") {
		t.Errorf("exit code %d, says %s", code, errOut)
	}
}
