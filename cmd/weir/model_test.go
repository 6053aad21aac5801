package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/cmd/weir/cli"
	"weir/handlers"
)

// blocks are the blocks of a page in a language.
func blocks(t *testing.T, page, language string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```").FindAllStringSubmatch(string(text), -1) {
		list = append(list, found[1])
	}
	return list
}

// The example of the documentation is what it says, and its parts are merged to the same bytes.
func TestModelExample(t *testing.T) {
	const page = "../../docs/how-to/models.md"
	dir, program := t.TempDir(), blocks(t, page, "python")
	python := exec.Command("python3", "-c", program[0])
	python.Dir = dir
	if out, err := python.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	examples := blocks(t, page, "console")
	if len(examples) != 2 {
		t.Fatalf("got %q", examples)
	}
	run := func(want int, args ...string) (string, string) {
		t.Helper()
		var out, errOut strings.Builder
		if code := cli.Run(newRootCommand(), append([]string{"model"}, args...), &out, &errOut); code != want {
			t.Fatalf("%v: exit code %d, want %d: %s", args, code, want, &errOut)
		}
		return out.String(), errOut.String()
	}
	tiny := filepath.Join(dir, "tiny")
	for _, example := range examples {
		command, want, _ := strings.Cut(example, "\n")
		args := strings.Fields(strings.Replace(strings.TrimPrefix(command, "$ weir model "), "tiny", tiny, 1))
		if got, _ := run(0, args...); strings.TrimSpace(got) != want {
			t.Errorf("%s prints\n%s", command, got)
		}
	}
	devices := []string{"--context", "1024", "--device", "64MiB", "--device", "48MiB"}
	parts, merged := filepath.Join(dir, "parts"), filepath.Join(dir, "merged")
	if out, _ := run(0, append([]string{"split", tiny, parts}, devices...)...); strings.Count(out, "written") != 2 {
		t.Errorf("got %s", out)
	}
	var again []struct{ Written bool }
	if out, _ := run(0, append([]string{"split", tiny, parts, "--output", "json"}, devices...)...); json.Unmarshal([]byte(out), &again) != nil || len(again) != 2 || again[0].Written {
		t.Errorf("got %s", out)
	}
	run(0, "merge", parts, merged)
	for _, name := range []string{"model.safetensors", "config.json"} {
		a, errA := os.ReadFile(filepath.Join(tiny, name))
		b, errB := os.ReadFile(filepath.Join(merged, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v, %v", name, errA, errB)
		}
	}
	out, _ := run(0, append([]string{"plan", tiny, "--output", "json"}, devices...)...)
	var report handlers.ModelReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Plan.Parts) != 2 || report.Facts.Tensors != 67 {
		t.Errorf("%v: %s", err, out)
	}
	if _, text := run(1, "plan", tiny, "--device", "8MiB"); !strings.Contains(text, "the model does not fit") {
		t.Errorf("got %s", text)
	}
	run(2, "plan", tiny)
	if _, text := run(2, "plan", tiny, "--device", "x"); !strings.Contains(text, "--device: must be memory") {
		t.Errorf("got %s", text)
	}
	run(2, "plan", tiny, "--device", "8MiB", "--service-type", "x")
	run(2, "show", tiny, "--batch", "0")
	nowhere := filepath.Join(dir, "nowhere")
	for _, args := range [][]string{{"show", nowhere}, {"merge", nowhere, merged}} {
		if _, text := run(1, args...); !strings.Contains(text, nowhere) {
			t.Errorf("%v does not say what is missing: %s", args, text)
		}
	}
	if _, text := run(1, "show", dir); !strings.Contains(text, "The folder contains no tensors") {
		t.Errorf("got %s", text)
	}
}
