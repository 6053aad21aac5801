package runtime

import (
	_ "embed"
	"encoding/json"
	"strings"
)

// GPUKernelPath is the directory for JUPYTER_PATH below which Jupyter finds [GPUKernelDir], with
// the files of [GPUKernelFiles].
const (
	GPUKernelPath = "/etc/weir/share/jupyter"
	GPUKernelDir  = GPUKernelPath + "/kernels/python-gpu"
)

// gpuKernel is the kernel that forwards to a run; see the text at its beginning.
//
//go:embed jupyter/weir_kernel.py
var gpuKernel string

// GPUKernelFiles returns the files of the kernel "Python (GPU)", by name.
func GPUKernelFiles() map[string]string {
	spec, err := json.Marshal(map[string]any{"argv": []string{"python", GPUKernelDir + "/weir_kernel.py", "-f", "{connection_file}"},
		"display_name": "Python (GPU)", "language": "python", "interrupt_mode": "message"})
	if err != nil {
		panic(err) // it is constant
	}
	return map[string]string{"kernel.json": string(spec), "weir_kernel.py": gpuKernel}
}

// WithGPUKernel is a JUPYTER_PATH with the kernel after what it has.
func WithGPUKernel(path string) string { return strings.TrimPrefix(path+":"+GPUKernelPath, ":") }

// RunPortVariable names the port at which programs in its workspace reach a run, in the environment
// of the run, where they have only the network in common.
const RunPortVariable = "WEIR_RUN_PORT"
