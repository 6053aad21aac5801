package runtime

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The kernel "Python (GPU)" tells what it waits for, says that it is idle, is kept and
// released by cells, is not blocked by a slow portal, and leaves no files.
func TestGPUKernel(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, name, "-c", "import ipykernel, jupyter_client, zmq").Run() == nil {
			python = name
		}
	}
	if python == "" {
		t.Fatal("no Python with ipykernel is installed; “tools/setup test” installs it")
	}
	file := filepath.Join(t.TempDir(), "weir_kernel.py")
	if err := os.WriteFile(file, []byte(gpuKernel), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(ctx, python, "testdata/drive_kernel.py", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
