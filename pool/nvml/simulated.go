package nvml

import (
	"crypto/sha256"
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

	"weir/pool"
)

// MaxSimulated is how many GPUs a simulated machine can have: as many as the
// DGX it is taken from.
const MaxSimulated = 8

// SimulatedPrefix begins the UUID of every simulated GPU.
const SimulatedPrefix = "GPU-sim-"

var machines = map[string]func() *server.Server{
	"a100": dgxa100.New,
	"b200": dgxb200.New,
	"h100": dgxh100.New,
	"h200": dgxh200.New,
}

// Simulated is a machine with count GPUs, 1 to [MaxSimulated], of a model:
// "a100", "b200", "h100" or "h200" in any case. The seed is the identity of
// the host, never empty: the same seed, model and count give the same UUIDs
// at every start, and different seeds give different ones.
func Simulated(model string, count int, seed string) (pool.Inventory, error) {
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
	lib := machine()
	lib.Devices = lib.Devices[:count]
	for i, dev := range lib.Devices {
		settle(dev.(*server.Device), simulatedUUID(seed, model, i))
	}
	return &Driver{lib: lib, simulated: true}, nil
}

// settle gives a mock device what it lacks: a UUID that outlives a restart,
// and its PCI address where a driver tells it.
func settle(dev *server.Device, uuid string) {
	dev.UUID = uuid
	info := gonvml.PciInfo{PciDeviceId: dev.Config.PciDeviceId}
	for i := range min(len(dev.PciBusID), len(info.BusId)-1) {
		info.BusId[i] = int8(dev.PciBusID[i])
	}
	dev.GetPciInfoFunc = func() (gonvml.PciInfo, gonvml.Return) { return info, gonvml.SUCCESS }
}

func simulatedUUID(seed, model string, index int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s %d", seed, model, index))
	return fmt.Sprintf("%s%x-%x-%x-%x-%x", SimulatedPrefix, sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
