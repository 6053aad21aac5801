package nvml

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

// MaxSimulated is the maximum number of GPUs of a simulated machine, that of a DGX.
const MaxSimulated = 8

var machines = map[string]dgx{
	"a100": {dgxa100.New, 12, 55, 400},
	"b200": {dgxb200.New, 18, 140, 1000},
	"h100": {dgxh100.New, 18, 70, 700},
	"h200": {dgxh200.New, 18, 75, 700},
}

// Simulated is a machine with count GPUs, 1 to [MaxSimulated], of a model: "a100",
// "b200", "h100" or "h200" in any case. UUIDs are derived from the seed, which
// identifies the host and is not empty. Metrics are derived from the UUIDs and the
// clock.
func (c Config) Simulated(model string, count int, seed string) (*Driver, error) {
	model = strings.ToLower(strings.TrimSpace(model))
	machine, known := machines[model]
	switch {
	case !known:
		names := strings.Join(slices.Sorted(maps.Keys(machines)), ", ")
		return nil, fmt.Errorf("nvml: no simulated GPU model %q: there are %s", model, names)
	case count < 1 || count > MaxSimulated:
		return nil, fmt.Errorf("nvml: %d simulated GPUs: from 1 to %d are possible", count, MaxSimulated)
	case seed == "":
		return nil, errors.New("nvml: simulated GPUs need the identity of their host")
	}
	mock := machine.server()
	for i, dev := range mock.Devices {
		dev.(*server.Device).UUID = identity(SimulatedPrefix, seed, model, i)
	}
	mock.Devices = mock.Devices[:count]
	return c.simulate(mock, machine), nil
}

func (c Config) simulate(mock *server.Server, machine dgx) *Driver {
	d := c.driver(nil)
	sim := &simMachine{Server: mock}
	for _, dev := range mock.Devices {
		sim.gpus = append(sim.gpus, newSimGPU(dev.(*server.Device), machine))
	}
	d.lib, d.simulated = sim, true
	return d
}

// simMachine is a mock with simGPUs. It implements the functions that are called
// often, because the mock records every call.
type simMachine struct {
	*server.Server
	gpus []gonvml.Device
}

func (m *simMachine) Extensions() gonvml.ExtendedInterface { return m }
func (m *simMachine) LookupSymbol(string) error            { return nil }

func (m *simMachine) DeviceGetCount() (int, gonvml.Return) { return len(m.gpus), gonvml.SUCCESS }

func (m *simMachine) DeviceGetHandleByIndex(i int) (gonvml.Device, gonvml.Return) {
	if i < 0 || i >= len(m.gpus) {
		return nil, gonvml.ERROR_INVALID_ARGUMENT
	}
	return m.gpus[i], gonvml.SUCCESS
}

func (m *simMachine) EventSetCreate() (gonvml.EventSet, gonvml.Return) {
	return nil, gonvml.ERROR_NOT_SUPPORTED
}
