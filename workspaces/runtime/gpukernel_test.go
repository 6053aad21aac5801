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
// released by cells, is not blocked by a slow portal, and leaves no files; also where it and the
// run have only the network in common, on which a stranger gets nothing.
func TestGPUKernel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir_kernel.py")
	if err := os.WriteFile(file, []byte(gpuKernel), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"machine": {file}, "cluster": {file, "cluster"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			args = append([]string{"testdata/drive_kernel.py"}, args...)
			if out, err := exec.CommandContext(ctx, jupyterPython(t), args...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
