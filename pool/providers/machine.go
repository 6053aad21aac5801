package providers

import (
	"context"
	"time"
)

// Inventory tells what GPUs a machine has: NVML on a real one, NVIDIA's own
// mocks where GPUs are simulated.
type Inventory interface {
	Devices(ctx context.Context) ([]DeviceReport, error)
}

// Machine is the GPUs of one machine as its agent works with them. Its
// methods are called one at a time.
type Machine interface {
	Inventory

	// Samples measures every device now.
	Samples(ctx context.Context) ([]Sample, error)

	// Faults returns the errors that the driver has told since the last
	// call; it does not wait.
	Faults() []Fault

	// Apply brings the devices to the sharing that is wanted, as far as it
	// can: what a device runs is never ended for it. The next Devices tells
	// what is in effect. The error tells what could not be done.
	Apply(ctx context.Context, orders []DeviceOrder) error
}

// DeviceReport is one physical GPU, or one MIG instance, as its driver
// describes it.
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
	Sharing      string   `json:"sharing,omitempty"`      // in effect: mps where its daemon answers, mig where the mode is on
	MIGProfiles  []string `json:"mig_profiles,omitempty"` // that the GPU can be cut into, such as 1g.10gb
	Parent       string   `json:"parent,omitempty"`       // UUID of the physical GPU of an instance
	Profile      string   `json:"profile,omitempty"`      // of an instance
	Cores        int64    `json:"cores,omitempty"`        // of the GPU's 100 that an instance has; 0: all
	NUMA         int      `json:"numa"`                   // node, -1 when unknown
	Peers        []string `json:"peers,omitempty"`        // UUIDs of the GPUs joined by NVLink
	ECC          string   `json:"ecc,omitempty"`          // on, off, or empty: not known
	ECCErrors    int64    `json:"ecc_errors,omitempty"`   // uncorrected since the driver started
	Trouble      string   `json:"trouble,omitempty"`      // a failure in the driver's words; nothing is placed on the device
}

// Sample is what was measured of one device at one moment.
type Sample struct {
	UUID          string        `json:"uuid"`
	Age           time.Duration `json:"age"`         // how long ago, by the agent's clock that only runs; the portal's clock dates it
	Utilisation   int64         `json:"utilisation"` // percent
	MemoryUsedMiB int64         `json:"memory_used_mib"`
	Temperature   int64         `json:"temperature"` // °C
	PowerMW       int64         `json:"power_mw"`
	Processes     []Process     `json:"processes,omitempty"` // of the newest sample only
}

// Process uses a GPU.
type Process struct {
	PID       int64  `json:"pid"`
	Name      string `json:"name"`
	MemoryMiB int64  `json:"memory_mib"`
}

// Fault is an error that the driver told of a device (an XID event).
type Fault struct {
	UUID string        `json:"uuid"`
	XID  int64         `json:"xid"`
	Age  time.Duration `json:"age"`
}

// DeviceOrder is how one physical device shall be shared.
type DeviceOrder struct {
	UUID    string   `json:"uuid"`
	Sharing string   `json:"sharing"`          // exclusive, time-slicing, mps, mig
	Layout  []string `json:"layout,omitempty"` // MIG profiles
}
