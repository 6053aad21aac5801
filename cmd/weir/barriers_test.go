package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/cmd/weir/cli"
	"weir/models"
)

func TestBarriers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kernel.ptx")
	source := ".entry k() .reqntid 64 {\n\tbar.sync 40;\n\tbar.sync 41;\n\tret;\n}\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(want int, args ...string) (string, string) {
		t.Helper()
		var out, errOut strings.Builder
		if code := cli.Run(newRootCommand(), append([]string{"barriers"}, args...), &out, &errOut); code != want {
			t.Fatalf("%v: exit code %d, want %d: %s", args, code, want, &errOut)
		}
		return out.String(), errOut.String()
	}
	want := strings.NewReplacer("40", "0", "41", "0").Replace(source)
	out, report := run(0, file)
	if out != want || !strings.Contains(report, "2 logical barriers in 2 segments use 1 of 16 physical barriers") {
		t.Errorf("got %q, %q", out, report)
	}
	out, text := run(0, file, "--report", "json", "--physical", "1")
	var decoded models.BarrierReport
	if err := json.Unmarshal([]byte(text), &decoded); err != nil || out != want || decoded.Physical != 1 || decoded.Kernels[0].Logical != 2 {
		t.Errorf("got %q, %q: %v", out, text, err)
	}
	if _, text := run(0, file, "--report", "none"); text != "" {
		t.Errorf("got %q", text)
	}
	run(2, file, "--physical", "17")
	run(2, file, "--threads", "-1")
	run(2, file, "--report", "xml")
	run(2)
	run(1, file+".missing")
	if err := os.WriteFile(file, []byte(".entry k() {\nbar.sync %r1; }"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, text := run(1, file); !strings.Contains(text, "kernel.ptx: line 2: the barrier is in register %r1") {
		t.Errorf("got %q", text)
	}
}
