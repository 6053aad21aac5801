package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"weir/models"
	"weir/workspaces"
)

// showGPUs shows a workspace the devices of its shares and no other, and the
// MPS daemons that serve them. A simulated device has nothing to show.
func (r *Runtime) showGPUs(ctx context.Context, s *sandbox, gpus []workspaces.GPU) {
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
			r.showMPS(s, i, g, !served)
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

func (r *Runtime) deviceFiles(ctx context.Context, g workspaces.GPU) ([]string, error) {
	if g.Enforcement != models.EnforcedMIG {
		return []string{fmt.Sprintf("/dev/nvidia%d", g.Minor)}, nil
	}
	if r.files == nil {
		return nil, errors.New("this machine's runtime cannot show MIG instances")
	}
	return r.files(ctx, g.UUID)
}

// showMPS shows the pipes of the daemon that serves a share. What the daemon
// and its clients write to /dev/shm they must both see: the first daemon's
// stands in for the workspace's own, and is common to all that it serves.
func (r *Runtime) showMPS(s *sandbox, place int, g workspaces.GPU, first bool) {
	if r.mpsDir == "" {
		s.fail(errors.New("this machine's runtime has no directory for MPS"))
		return
	}
	base := filepath.Join(r.mpsDir, g.UUID)
	if _, err := os.Stat(filepath.Join(base, "pipe")); err != nil {
		s.fail(fmt.Errorf("MPS does not run for the GPU %s: %w", g.UUID, err))
		return
	}
	s.bind(filepath.Join(base, "pipe"), workspaces.MPSPipe(place), false)
	if first {
		s.bind(filepath.Join(base, "shm"), "/dev/shm", false)
	}
}

// gpuLimit says how the shares are kept apart, claiming only what this
// runtime itself does: it shows a workspace no device but its own. MPS limits
// who wants to be limited, so it is not claimed.
func gpuLimit(gpus []workspaces.GPU) []models.Limit {
	limits := map[string]models.Limit{}
	for _, g := range gpus {
		limit := models.Limit{Resource: "gpu"}
		switch {
		case g.Simulated:
			limit.How = models.Say("the device is simulated")
		case g.Enforcement == models.EnforcedExclusive:
			limit.Enforced, limit.How = true, models.Say("the whole device; other workspaces cannot access it")
		case g.Enforcement == models.EnforcedMIG:
			limit.Enforced, limit.How = true, models.Say("a MIG instance isolated by the hardware; other workspaces cannot access it")
		case g.Enforcement == models.EnforcedMPS:
			limit.How = models.Say("MPS limits only programs that keep its environment variables")
		default:
			limit.How = models.Say("the device is shared with other workspaces; users must stay within their shares")
		}
		limits[limit.How.String()] = limit
	}
	var all []models.Limit
	for _, how := range slices.Sorted(maps.Keys(limits)) {
		all = append(all, limits[how])
	}
	return all
}
