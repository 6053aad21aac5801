package runtime

import (
	_ "embed"
	"encoding/json"
)

// GPUKernelPath is the directory for JUPYTER_PATH in which Jupyter finds the files of
// [GPUKernelFiles].
const GPUKernelPath = "/etc/weir/share/jupyter"

// gpuKernel is the kernel that forwards to a run; see the text at its beginning.
//
//go:embed jupyter/weir_kernel.py
var gpuKernel string

// GPUKernelFiles returns the files of the kernel "Python (GPU)", by path.
func GPUKernelFiles() map[string]string {
	const dir = GPUKernelPath + "/kernels/python-gpu"
	spec, err := json.Marshal(map[string]any{"argv": []string{"python", dir + "/weir_kernel.py", "-f", "{connection_file}"},
		"display_name": "Python (GPU)", "language": "python", "interrupt_mode": "message"})
	if err != nil {
		panic(err) // it is constant
	}
	return map[string]string{dir + "/kernel.json": string(spec), dir + "/weir_kernel.py": gpuKernel}
}
