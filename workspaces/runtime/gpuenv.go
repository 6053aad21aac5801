package runtime

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"weir/models"
)

// MPSPipe returns the directory with the pipes of the MPS daemon that serves the
// share at an index of Spec.GPUs, as the workspace sees it.
func MPSPipe(index int) string { return path.Join("/run/nvidia-mps", strconv.Itoa(index)) }

// ServedByMPS reports whether an MPS daemon serves the share. Simulated devices
// have none.
func (g GPU) ServedByMPS() bool { return g.Enforcement == models.EnforcedMPS && !g.Simulated }

// Isolation returns whether and how a workspace is limited to the share if the
// runtime shows it no other device. MPS is not enforcement: programs can remove
// its environment variables.
func (g GPU) Isolation() (enforced bool, how models.Text) {
	switch {
	case g.Simulated:
		return false, models.Say("the device is simulated")
	case g.Enforcement == models.EnforcedExclusive:
		return true, models.Say("the whole device; other workspaces cannot access it")
	case g.Enforcement == models.EnforcedMIG:
		return true, models.Say("a MIG instance isolated by the hardware; other workspaces cannot access it")
	case g.Enforcement == models.EnforcedMPS:
		return false, models.Say("MPS limits only programs that keep its environment variables")
	}
	return false, models.Say("the device is shared with other workspaces; users must stay within their shares")
}

// GPULimits returns the distinct limits of the shares, each determined by
// isolation.
func GPULimits(gpus []GPU, isolation func(GPU) (enforced bool, how models.Text)) (all []models.Limit) {
	limits := map[string]models.Limit{}
	for _, g := range gpus {
		enforced, how := isolation(g)
		limits[how.String()] = models.Limit{Resource: "gpu", Enforced: enforced, How: how}
	}
	for _, how := range slices.Sorted(maps.Keys(limits)) {
		all = append(all, limits[how])
	}
	return all
}

// JoinGPUs joins a property of each share with commas.
func JoinGPUs(gpus []GPU, property func(GPU) string) string {
	var all []string
	for _, g := range gpus {
		all = append(all, property(g))
	}
	return strings.Join(all, ",")
}

// GPUEnvironment returns the environment variables that describe the shares of a
// workspace; lists are in the order of the shares. Without shares, programs find
// no GPU.
//
// A CUDA program uses one MPS daemon and sees only that daemon's device. If MPS
// serves any shares, the variables therefore select the first of those; programs
// that use another one set the variables from the lists in WEIR_….
func GPUEnvironment(gpus []GPU) map[string]string {
	if len(gpus) == 0 {
		return map[string]string{"NVIDIA_VISIBLE_DEVICES": "void", "CUDA_VISIBLE_DEVICES": ""}
	}
	uuids := JoinGPUs(gpus, func(g GPU) string { return g.UUID })
	env := map[string]string{
		"NVIDIA_VISIBLE_DEVICES": uuids, "CUDA_VISIBLE_DEVICES": uuids,
		"WEIR_GPU_CORES":       JoinGPUs(gpus, func(g GPU) string { return strconv.FormatInt(g.Cores, 10) }),
		"WEIR_GPU_MEMORY_MIB":  JoinGPUs(gpus, func(g GPU) string { return strconv.FormatInt(g.MemoryMiB, 10) }),
		"WEIR_GPU_ENFORCEMENT": JoinGPUs(gpus, func(g GPU) string { return g.Enforcement }),
	}
	if slices.ContainsFunc(gpus, func(g GPU) bool { return g.Simulated }) {
		env["WEIR_GPU_SIMULATED"] = "1"
	}
	if first := slices.IndexFunc(gpus, GPU.ServedByMPS); first >= 0 {
		limitByMPS(env, first, gpus[first])
		pipes := make([]string, len(gpus))
		for i, g := range gpus {
			if g.ServedByMPS() {
				pipes[i] = MPSPipe(i)
			}
		}
		env["WEIR_GPU_MPS_PIPES"] = strings.Join(pipes, ",")
	}
	return env
}

// limitByMPS sets the variables of docs.nvidia.com/deploy/mps ("Appendix:
// Environment Variables"): the daemon's pipes, the percentage of the GPU's
// threads, and the memory, in MiB (M), of the daemon's only device, number 0.
func limitByMPS(env map[string]string, index int, g GPU) {
	env["CUDA_VISIBLE_DEVICES"] = g.UUID
	env["CUDA_MPS_PIPE_DIRECTORY"] = MPSPipe(index)
	env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = strconv.FormatInt(g.Cores, 10)
	if g.MemoryMiB > 0 {
		env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = fmt.Sprintf("0=%dM", g.MemoryMiB)
	}
}
