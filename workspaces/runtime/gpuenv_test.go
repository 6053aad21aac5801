package runtime_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"weir/workspaces/runtime"
)

func TestGPUEnvironment(t *testing.T) {
	share := func(uuid, enforcement string, cores, memory int64) runtime.GPU {
		return runtime.GPU{UUID: uuid, Enforcement: enforcement, Cores: cores, MemoryMiB: memory}
	}
	simulated := share("GPU-sim-a", "mps", 30, 4096)
	simulated.Simulated = true
	for name, c := range map[string]struct {
		gpus []runtime.GPU
		want string // lines, sorted
	}{
		"none": {nil, "CUDA_VISIBLE_DEVICES= NVIDIA_VISIBLE_DEVICES=void"},
		"exclusive": {[]runtime.GPU{share("GPU-a", "exclusive", 100, 81920)},
			"CUDA_VISIBLE_DEVICES=GPU-a NVIDIA_VISIBLE_DEVICES=GPU-a WEIR_GPU_CORES=100 WEIR_GPU_ENFORCEMENT=exclusive WEIR_GPU_MEMORY_MIB=81920"},
		"advisory": {[]runtime.GPU{share("GPU-a", "advisory", 50, 4096), share("GPU-b", "advisory", 50, 4096)},
			"CUDA_VISIBLE_DEVICES=GPU-a,GPU-b NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b WEIR_GPU_CORES=50,50 WEIR_GPU_ENFORCEMENT=advisory,advisory WEIR_GPU_MEMORY_MIB=4096,4096"},
		"an instance": {[]runtime.GPU{share("MIG-a", "mig", 42, 40960)},
			"CUDA_VISIBLE_DEVICES=MIG-a NVIDIA_VISIBLE_DEVICES=MIG-a WEIR_GPU_CORES=42 WEIR_GPU_ENFORCEMENT=mig WEIR_GPU_MEMORY_MIB=40960"},
		"MPS": {[]runtime.GPU{share("GPU-a", "mps", 30, 4096)},
			"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30 CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4096M CUDA_MPS_PIPE_DIRECTORY=/run/nvidia-mps/0 CUDA_VISIBLE_DEVICES=GPU-a " +
				"NVIDIA_VISIBLE_DEVICES=GPU-a WEIR_GPU_CORES=30 WEIR_GPU_ENFORCEMENT=mps WEIR_GPU_MEMORY_MIB=4096 WEIR_GPU_MPS_PIPES=/run/nvidia-mps/0"},
		"MPS without a memory": {[]runtime.GPU{share("GPU-a", "mps", 30, 0)},
			"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30 CUDA_MPS_PIPE_DIRECTORY=/run/nvidia-mps/0 CUDA_VISIBLE_DEVICES=GPU-a " +
				"NVIDIA_VISIBLE_DEVICES=GPU-a WEIR_GPU_CORES=30 WEIR_GPU_ENFORCEMENT=mps WEIR_GPU_MEMORY_MIB=0 WEIR_GPU_MPS_PIPES=/run/nvidia-mps/0"},
		"MPS beside others": {[]runtime.GPU{share("GPU-a", "exclusive", 100, 9), share("GPU-b", "mps", 30, 8), share("GPU-c", "mps", 20, 7)},
			"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30 CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8M CUDA_MPS_PIPE_DIRECTORY=/run/nvidia-mps/1 CUDA_VISIBLE_DEVICES=GPU-b " +
				"NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b,GPU-c WEIR_GPU_CORES=100,30,20 WEIR_GPU_ENFORCEMENT=exclusive,mps,mps WEIR_GPU_MEMORY_MIB=9,8,7 " +
				"WEIR_GPU_MPS_PIPES=,/run/nvidia-mps/1,/run/nvidia-mps/2"},
		"simulated MPS": {[]runtime.GPU{simulated},
			"CUDA_VISIBLE_DEVICES=GPU-sim-a NVIDIA_VISIBLE_DEVICES=GPU-sim-a WEIR_GPU_CORES=30 WEIR_GPU_ENFORCEMENT=mps WEIR_GPU_MEMORY_MIB=4096 WEIR_GPU_SIMULATED=1"},
	} {
		env := runtime.GPUEnvironment(c.gpus)
		var lines []string
		for _, key := range slices.Sorted(maps.Keys(env)) {
			lines = append(lines, key+"="+env[key])
		}
		if got := strings.Join(lines, " "); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}
