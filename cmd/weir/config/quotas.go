package config

import (
	"fmt"

	"weir/models"
)

// quotaSettings are what a quota that is left open gets for each GPU.
var quotaSettings = []setting{
	{name: "default-gpu-memory", kind: "SIZE", defaultText: "40GiB",
		help: "GPU memory for each GPU in quotas that leave it open, while the pool has no GPUs",
		set:  into(func(c *Config) *int64 { return &c.PerGPU.GPUMemoryMiB }, parseMiB)},
	{name: "default-cpu", kind: "CORES", defaultText: "8",
		help: "CPU for each GPU in quotas that leave it open, unless the capacity is known",
		set:  into(func(c *Config) *int64 { return &c.PerGPU.CPUMilli }, parseCPU)},
	{name: "default-memory", kind: "SIZE", defaultText: "32GiB",
		help: "memory for each GPU in quotas that leave it open, unless the capacity is known",
		set:  into(func(c *Config) *int64 { return &c.PerGPU.MemoryMiB }, parseMiB)},
	{name: "default-storage", kind: "SIZE", defaultText: "100GiB",
		help: "storage for each GPU in quotas that leave it open, unless the capacity is known",
		set:  into(func(c *Config) *int64 { return &c.PerGPU.StorageMiB }, parseMiB)},
}

func parseMiB(text string) (int64, error) {
	n, err := models.ParseMiB(text, 1)
	if err != nil {
		return 0, fmt.Errorf("%q must be a size such as 32GiB", text)
	}
	return n, nil
}

func parseCPU(text string) (int64, error) {
	n, err := models.ParseCPU(text)
	if err != nil {
		return 0, fmt.Errorf("%q must be a number of CPU cores such as 8 or 500m", text)
	}
	return n, nil
}
