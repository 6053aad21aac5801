package runtime

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// jupyterPython returns a Python with ipykernel.
func jupyterPython(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.CommandContext(t.Context(), name, "-c", "import ipykernel, jupyter_client, zmq").Run() == nil {
			return name
		}
	}
	t.Fatal("no Python with ipykernel is installed; “tools/setup test” installs it")
	return ""
}

// The kernel "Python (GPU)" tells what it waits for, says that it is idle, is kept and
// released by cells, is not blocked by a slow portal, and leaves no files.
func TestGPUKernel(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	file := filepath.Join(t.TempDir(), "weir_kernel.py")
	if err := os.WriteFile(file, []byte(gpuKernel), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(ctx, jupyterPython(t), "testdata/drive_kernel.py", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
