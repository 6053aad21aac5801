package workspaces

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// MPSPipes is where a workspace sees the pipes of the MPS daemons that serve
// its shares: one directory for each, named by [MPSPipe].
const MPSPipes = "/run/nvidia-mps"

// MPSPipe is the directory of the share at a place in Spec.GPUs.
func MPSPipe(place int) string { return path.Join(MPSPipes, strconv.Itoa(place)) }

// ServedByMPS reports whether an MPS daemon serves the share. Nothing serves a
// simulated one.
func (g GPU) ServedByMPS() bool { return g.Enforcement == "mps" && !g.Simulated }

// GPUEnvironment tells programs which shares a workspace holds; lists are in
// the order of the shares. Without any, programs find no GPU.
//
// A CUDA program uses one MPS daemon, and sees the devices of that one only.
// So where shares are served by MPS, programs see the first of them, and those
// that shall use another set the variables anew, from the lists in WEIR_….
// They could also unset them: MPS is a limit for programs that keep to it.
func GPUEnvironment(gpus []GPU) map[string]string {
	if len(gpus) == 0 {
		return map[string]string{"NVIDIA_VISIBLE_DEVICES": "void", "CUDA_VISIBLE_DEVICES": ""}
	}
	list := func(f func(int, GPU) string) string {
		var all []string
		for i, g := range gpus {
			all = append(all, f(i, g))
		}
		return strings.Join(all, ",")
	}
	uuids := list(func(_ int, g GPU) string { return g.UUID })
	env := map[string]string{
		"NVIDIA_VISIBLE_DEVICES": uuids, "CUDA_VISIBLE_DEVICES": uuids,
		"WEIR_GPU_CORES":       list(func(_ int, g GPU) string { return strconv.FormatInt(g.Cores, 10) }),
		"WEIR_GPU_MEMORY_MIB":  list(func(_ int, g GPU) string { return strconv.FormatInt(g.MemoryMiB, 10) }),
		"WEIR_GPU_ENFORCEMENT": list(func(_ int, g GPU) string { return g.Enforcement }),
	}
	if slices.ContainsFunc(gpus, func(g GPU) bool { return g.Simulated }) {
		env["WEIR_GPU_SIMULATED"] = "1"
	}
	if first := slices.IndexFunc(gpus, GPU.ServedByMPS); first >= 0 {
		limitByMPS(env, first, gpus[first])
		env["WEIR_GPU_MPS_PIPES"] = list(func(i int, g GPU) string {
			if !g.ServedByMPS() {
				return ""
			}
			return MPSPipe(i)
		})
	}
	return env
}

// limitByMPS sets what NVIDIA documents at docs.nvidia.com/deploy/mps
// ("Appendix: Environment Variables"): the daemon's pipes; the part of the
// GPU's threads, in percent; and the memory for each of the daemon's devices,
// of which ours has one, number 0. M is MiB.
func limitByMPS(env map[string]string, place int, g GPU) {
	env["CUDA_VISIBLE_DEVICES"] = g.UUID
	env["CUDA_MPS_PIPE_DIRECTORY"] = MPSPipe(place)
	env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = strconv.FormatInt(g.Cores, 10)
	if g.MemoryMiB > 0 {
		env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = fmt.Sprintf("0=%dM", g.MemoryMiB)
	}
}

// HAMiResources is what a container asks of a cluster whose GPUs HAMi shares
// out: nvidia.com/gpu is how many, and nvidia.com/gpucores (percent) and
// nvidia.com/gpumem (MiB) are of each of them, not of all together
// (kueue.sigs.k8s.io/docs/tasks/run/using_hami; Project-HAMi/HAMi issue 302).
// One number stands for every GPU, so of unequal shares it is the least. A
// memory that is not limited is left out: HAMi then gives the whole. Without
// shares the result is empty.
func HAMiResources(gpus []GPU) map[string]int64 {
	resources := map[string]int64{}
	if len(gpus) == 0 {
		return resources
	}
	cores, memory := gpus[0].Cores, gpus[0].MemoryMiB
	for _, g := range gpus[1:] {
		cores, memory = min(cores, g.Cores), min(memory, g.MemoryMiB)
	}
	resources["nvidia.com/gpu"], resources["nvidia.com/gpucores"] = int64(len(gpus)), cores
	if memory > 0 {
		resources["nvidia.com/gpumem"] = memory
	}
	return resources
}
