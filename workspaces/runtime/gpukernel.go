package runtime

import (
	_ "embed"
	"encoding/json"
)

// gpuKernel is the kernel that forwards to a run; see the text at its beginning.
//
//go:embed jupyter/weir_kernel.py
var gpuKernel string

// GPUKernelFiles returns the files of the kernel "Python (GPU)" in a directory, by name.
func GPUKernelFiles(dir string) map[string]string {
	spec, err := json.Marshal(map[string]any{"argv": []string{"python", dir + "/weir_kernel.py", "-f", "{connection_file}"},
		"display_name": "Python (GPU)", "language": "python", "interrupt_mode": "message"})
	if err != nil {
		panic(err) // it is constant
	}
	return map[string]string{"kernel.json": string(spec), "weir_kernel.py": gpuKernel}
}

// RunPortVariable names the port at which programs in its workspace reach a run, in the environment
// of the run, where they have only the network in common.
const RunPortVariable = "WEIR_RUN_PORT"
