package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"weir/models"
	"weir/workspaces/runtime"
)

// bindGPUs binds the devices of the shares and no others, and the directories of
// the MPS daemons that serve them. Simulated devices have no files.
func (r *Runtime) bindGPUs(ctx context.Context, s *sandbox, gpus []runtime.GPU) {
	inUse, served := false, false
	for i, g := range gpus {
		if g.Simulated {
			continue
		}
		inUse = true
		files, err := r.deviceFiles(ctx, g)
		if err != nil {
			s.fail(err)
			return
		}
		for _, path := range files {
			s.add("--dev-bind-try", path, path)
		}
		if g.ServedByMPS() {
			r.bindMPS(s, i, g, !served)
			served = true
		}
	}
	if !inUse {
		return
	}
	for _, path := range []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"} {
		s.add("--dev-bind-try", path, path)
	}
	for _, path := range []string{"/sys/bus/pci", "/sys/devices"} {
		s.add("--ro-bind-try", path, path)
	}
}

func (r *Runtime) deviceFiles(ctx context.Context, g runtime.GPU) ([]string, error) {
	if g.Enforcement != models.EnforcedMIG {
		return []string{fmt.Sprintf("/dev/nvidia%d", g.Minor)}, nil
	}
	if r.config.Files == nil {
		return nil, errors.New("this machine's runtime cannot show MIG instances")
	}
	return r.config.Files(ctx, g.UUID)
}

// bindMPS binds the pipes of the daemon that serves a share. A daemon and its
// clients must share /dev/shm, so that of the first daemon replaces the
// workspace's own.
func (r *Runtime) bindMPS(s *sandbox, place int, g runtime.GPU, first bool) {
	if r.config.MPSDir == "" {
		s.fail(errors.New("this machine's runtime has no directory for MPS"))
		return
	}
	base := filepath.Join(r.config.MPSDir, g.UUID)
	if _, err := os.Stat(filepath.Join(base, "pipe")); err != nil {
		s.fail(fmt.Errorf("MPS does not run for the GPU %s: %w", g.UUID, err))
		return
	}
	s.bind(filepath.Join(base, "pipe"), runtime.MPSPipe(place), false)
	if first {
		s.bind(filepath.Join(base, "shm"), "/dev/shm", false)
	}
}
