package local

import (
	"os/exec"
	"path/filepath"

	"weir/models"
	"weir/workspaces/runtime"
)

// SharesNetwork reports whether workspaces share the network of the machine.
func (r *Runtime) SharesNetwork() bool { return !r.network.missing.Empty() }

// Limits tries the limits of a workspace on a process that sleeps, and returns for each
// resource whether this machine enforces it, and whether workspaces have a network of their own.
func (r *Runtime) Limits() []models.Limit {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		return []models.Limit{{Resource: "cpu", How: describeError(err)}, {Resource: "memory", How: describeError(err)}}
	}
	name := cgroupName(filepath.Join(r.config.Dir, "limits"), r.config.Owner)
	group, limits := confine(name, cmd.Process.Pid, runtime.Spec{CPU: 1000, Memory: 64})
	_ = cmd.Process.Kill() // it ends by itself otherwise
	_ = cmd.Wait()         // killed
	if err := group.remove(); err != nil {
		r.config.Logger.Warn("cannot remove a cgroup", "err", err)
	}
	return append(limits, r.network.limit(nil))
}
