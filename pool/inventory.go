package pool

import "context"

// Inventory tells what GPUs a machine has: NVML on a real one, NVIDIA's own
// mocks where GPUs are simulated.
type Inventory interface {
	Devices(ctx context.Context) ([]DeviceReport, error)
}

// DeviceReport is one physical GPU as its driver describes it.
type DeviceReport struct {
	UUID         string
	Index        int
	Minor        int // /dev/nvidia{Minor}
	Model        string
	MemoryMiB    int64
	Architecture string
	PCIBusID     string
	Driver       string
	Simulated    bool
}
