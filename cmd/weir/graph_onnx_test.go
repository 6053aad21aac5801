package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/workspaces/onnx/onnxtest"
)

// pythonOf is a program that executes Python's of Debian, after a line of a shell.
func pythonOf(t *testing.T, line, arguments string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+line+"\nexec /usr/bin/python3 "+arguments+` "$@"`), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// modelFiles are a model and an input of it in a directory.
func modelFiles(t *testing.T) (dir, model, input string) {
	t.Helper()
	dir = t.TempDir()
	model, input = filepath.Join(dir, "network.onnx"), filepath.Join(dir, "image.npy")
	for name, content := range map[string][]byte{model: onnxtest.Network(), input: onnxtest.Array(onnxtest.Image(), 1, 2, onnxtest.Side, onnxtest.Side)} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, model, input
}

// A model is executed branch by branch; after a failure, only what is left of it. Its result is
// that of the whole model.
func TestGraphRunONNX(t *testing.T) {
	dir, model, input := modelFiles(t)
	python := pythonOf(t, fmt.Sprintf(`echo "$2" >> %[1]s/ran; case "$2" in */3.json) [ -e %[1]s/mended ] || exit 9;; esac`, dir), "")
	_, run := graphFile(t, "")
	args := []string{"run", model, "--input", "image=" + input, "--python", python, "--utilization", "0"}
	if _, text := run(9, args...); !strings.Contains(text, "the branches are executed with ") || !strings.Contains(text, "Add 6/branch of 3 has failed with exit code 9") {
		t.Error(text)
	}
	if err := os.WriteFile(filepath.Join(dir, "mended"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, text := run(0, append(args, "--resume")...); !strings.Contains(text, "the results are in "+filepath.Join(dir, "network.results")) {
		t.Error(text)
	}
	want := onnxtest.Classes(onnxtest.Image())
	got, err := os.ReadFile(filepath.Join(dir, "network.results", "classes.npy"))
	if err != nil || !bytes.Equal(got, onnxtest.Array(want[:], 1, 3)) {
		t.Errorf("%q, %v, want %v", got, err, want)
	}
	ran, err := os.ReadFile(filepath.Join(dir, "ran"))
	if err != nil || strings.Count(string(ran), "/0.json") != 1 || strings.Count(string(ran), "/3.json") != 2 {
		t.Errorf("%s, %v", ran, err)
	}
	if err := os.WriteFile(input, onnxtest.Array(onnxtest.Image(), 1, 2, 2*onnxtest.Side, onnxtest.Side/2), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, text := run(2, append(args, "--resume")...); !strings.Contains(text, "the graph is another one") {
		t.Errorf("with another input: %s", text)
	}
}

// What is missing of a model is named, and nothing runs.
func TestGraphRunONNXRefuses(t *testing.T) {
	_, model, input := modelFiles(t)
	graph, run := graphFile(t, exampleGraph)
	for _, c := range []struct {
		code int
		args []string
		says string
	}{
		{1, []string{model}, "the input image is missing; the model needs image"},
		{1, []string{model, "--input", "x=" + input}, "the input image is missing"},
		{1, []string{model, "--input", input, "--input", "x=" + input}, "needs image and no other inputs"},
		{1, []string{model, "--input", input + ".missing"}, "no such file"},
		{2, []string{model, "--input", input, "--input", input}, "must be NAME=FILE, each name once"},
		{2, []string{graph, "--input", input}, "graph.yaml is no model in ONNX format"},
		{2, []string{graph, "--project", "1"}, "--project: needs --runs"},
		{2, []string{model, "--input", input, "--runs"}, "is executed on this machine only"},
		{1, []string{model, "--input", input, "--input", "image=" + input}, "needs image and no other inputs"},
		{2, []string{graph, "--runs", "--project", "1"}, "no access token"},
		{1, []string{model, "--input", input, "--python", "/bin/true"}, "/bin/true names no runtime"},
		{1, []string{model, "--input", input, "--python", pythonOf(t, "", "-S")}, "the model can be planned only: ModuleNotFoundError"},
	} {
		if _, text := run(c.code, append([]string{"run"}, c.args...)...); !strings.Contains(text, c.says) {
			t.Errorf("%v: %s", c.args, text)
		}
	}
}
