package providers

import (
	"context"
	"time"
)

// Inventory lists the GPUs of a machine, from NVML or NVIDIA's mocks.
type Inventory interface {
	Devices(ctx context.Context) ([]DeviceReport, error)
}

// Machine reads and configures the GPUs of one machine. Its methods are called one
// at a time.
type Machine interface {
	Inventory

	// Samples measures every device now.
	Samples(ctx context.Context) ([]Sample, error)

	// Faults returns the errors of the driver since the last call, without
	// waiting.
	Faults() []Fault

	// Apply sets the sharing modes of devices, as far as possible without
	// ending processes. Devices reports the modes in effect. The error names the
	// orders that failed.
	Apply(ctx context.Context, orders []DeviceOrder) error
}

// DeviceReport describes a physical GPU or a MIG instance.
type DeviceReport struct {
	UUID         string   `json:"uuid"`
	Index        int      `json:"index"`
	Minor        int      `json:"minor"` // /dev/nvidia{Minor}
	Model        string   `json:"model"`
	MemoryMiB    int64    `json:"memory_mib"`
	Architecture string   `json:"architecture,omitempty"`
	PCIBusID     string   `json:"pci,omitempty"`
	Driver       string   `json:"driver,omitempty"`
	Simulated    bool     `json:"simulated,omitempty"`
	Sharing      string   `json:"sharing,omitempty"`      // in effect: mps if the daemon responds, mig if the mode is on
	MIGProfiles  []string `json:"mig_profiles,omitempty"` // that the GPU supports, such as 1g.10gb
	Parent       string   `json:"parent,omitempty"`       // UUID of the physical GPU of an instance
	Profile      string   `json:"profile,omitempty"`      // of an instance
	Cores        int64    `json:"cores,omitempty"`        // of an instance, of the GPU's 100; 0: all
	NUMA         int      `json:"numa"`                   // node, -1 when unknown
	Peers        []string `json:"peers,omitempty"`        // UUIDs of the GPUs connected by NVLink
	ECC          string   `json:"ecc,omitempty"`          // on, off, or empty if unknown
	ECCErrors    int64    `json:"ecc_errors,omitempty"`   // uncorrected since the driver started
	Trouble      string   `json:"trouble,omitempty"`      // error of the driver; nothing is placed on the device

	SharingError string `json:"sharing_error,omitempty"` // why the ordered mode is not in effect
}

// Sample is a measurement of one device.
type Sample struct {
	UUID          string        `json:"uuid"`
	Age           time.Duration `json:"age"`         // by the agent's monotonic clock
	Utilisation   int64         `json:"utilisation"` // percent
	MemoryUsedMiB int64         `json:"memory_used_mib"`
	Temperature   int64         `json:"temperature"` // °C
	PowerMW       int64         `json:"power_mw"`
	Processes     []Process     `json:"processes,omitempty"` // of the newest sample only
}

// Process is a process that uses a GPU.
type Process struct {
	PID       int64  `json:"pid"`
	Name      string `json:"name"`
	MemoryMiB int64  `json:"memory_mib"`
}

// Fault is an XID error of a device.
type Fault struct {
	UUID string        `json:"uuid"`
	XID  int64         `json:"xid"`
	Age  time.Duration `json:"age"`
}

// DeviceOrder is the desired sharing mode of a physical device.
type DeviceOrder struct {
	UUID    string   `json:"uuid"`
	Sharing string   `json:"sharing"`          // exclusive, time-slicing, mps, mig
	Layout  []string `json:"layout,omitempty"` // MIG profiles
	Busy    int64    `json:"busy,omitempty"`   // cores that its shares use, of 100; only of a simulated device, whose load they are
}
