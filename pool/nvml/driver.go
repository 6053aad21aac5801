package nvml

import (
	"context"
	"errors"
	"fmt"
	"strings"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"weir/pool"
)

// ErrNoDriver says that the machine has no NVIDIA driver: its library is
// absent, or the kernel module behind it is not loaded. Callers take it as
// "no GPUs here", not as a failure.
var ErrNoDriver = errors.New("nvml: no NVIDIA driver on this machine")

// NoMinor stands for the minor number of a device whose driver tells none;
// 0 is a real one.
const NoMinor = -1

// Driver reads a machine's GPUs from the management library. It is safe for
// concurrent use until it is closed.
type Driver struct {
	lib       gonvml.Interface
	simulated bool
}

var _ pool.Inventory = (*Driver)(nil)

// New opens the driver of this machine. The error is [ErrNoDriver] where
// there is none.
func New() (*Driver, error) { return open(gonvml.New()) }

func open(lib gonvml.Interface) (*Driver, error) {
	switch ret := lib.Init(); ret {
	case gonvml.SUCCESS:
		return &Driver{lib: lib}, nil
	case gonvml.ERROR_LIBRARY_NOT_FOUND, gonvml.ERROR_DRIVER_NOT_LOADED:
		return nil, fmt.Errorf("%w (%w)", ErrNoDriver, ret)
	default:
		return nil, fmt.Errorf("nvml: open the driver: %w", ret)
	}
}

// Close lets go of the library; after it the driver reports no devices any
// more, only an error.
func (d *Driver) Close() error {
	if ret := d.lib.Shutdown(); ret != gonvml.SUCCESS {
		return fmt.Errorf("nvml: close the driver: %w", ret)
	}
	return nil
}

// Devices reports every GPU that this process can use, in the driver's order
// and with the driver's index. A GPU that has fallen off its bus, or that the
// process may not open, is left out, so that it does not hide the others.
// What the driver does not support stays empty. A single call into the driver
// cannot be interrupted; the context is looked at between GPUs.
func (d *Driver) Devices(ctx context.Context) ([]pool.DeviceReport, error) {
	var failure error
	version := field(&failure, "driver version", d.lib.SystemGetDriverVersion, "")
	count, ret := d.lib.DeviceGetCount()
	if ret != gonvml.SUCCESS {
		failure = errors.Join(failure, fmt.Errorf("count: %w", ret))
	}
	if failure != nil {
		return nil, fmt.Errorf("nvml: %w", failure)
	}
	reports := make([]pool.DeviceReport, 0, max(count, 0))
	for i := range count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		report, err := d.device(i)
		if errors.Is(err, gonvml.ERROR_GPU_IS_LOST) || errors.Is(err, gonvml.ERROR_NO_PERMISSION) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("nvml: GPU %d: %w", i, err)
		}
		report.Driver = version
		reports = append(reports, report)
	}
	return reports, nil
}

// device reads one GPU. Only its UUID is indispensable.
func (d *Driver) device(index int) (pool.DeviceReport, error) {
	dev, ret := d.lib.DeviceGetHandleByIndex(index)
	if ret != gonvml.SUCCESS {
		return pool.DeviceReport{}, fmt.Errorf("handle: %w", ret)
	}
	var failure error
	report := pool.DeviceReport{
		UUID:         field(&failure, "UUID", dev.GetUUID, ""),
		Index:        index,
		Minor:        field(&failure, "minor number", dev.GetMinorNumber, NoMinor),
		Model:        field(&failure, "name", dev.GetName, ""),
		MemoryMiB:    int64(field(&failure, "memory", dev.GetMemoryInfo, gonvml.Memory{}).Total >> 20),
		Architecture: d.architecture(&failure, dev),
		PCIBusID:     busID(field(&failure, "PCI address", dev.GetPciInfo, gonvml.PciInfo{})),
		Simulated:    d.simulated,
	}
	if failure == nil && report.UUID == "" {
		failure = errors.New("the driver tells no UUID")
	}
	return report, failure
}

// field calls the driver for one thing. Where the driver does not support it
// the fallback stands in; any other trouble is added to failure.
func field[T any](failure *error, what string, get func() (T, gonvml.Return), fallback T) T {
	value, ret := get()
	switch ret {
	case gonvml.SUCCESS:
		return value
	case gonvml.ERROR_NOT_SUPPORTED, gonvml.ERROR_FUNCTION_NOT_FOUND:
	default:
		*failure = errors.Join(*failure, fmt.Errorf("%s: %w", what, ret))
	}
	return fallback
}

var architectures = map[gonvml.DeviceArchitecture]string{
	gonvml.DEVICE_ARCH_KEPLER:    "Kepler",
	gonvml.DEVICE_ARCH_MAXWELL:   "Maxwell",
	gonvml.DEVICE_ARCH_PASCAL:    "Pascal",
	gonvml.DEVICE_ARCH_VOLTA:     "Volta",
	gonvml.DEVICE_ARCH_TURING:    "Turing",
	gonvml.DEVICE_ARCH_AMPERE:    "Ampere",
	gonvml.DEVICE_ARCH_ADA:       "Ada",
	gonvml.DEVICE_ARCH_HOPPER:    "Hopper",
	gonvml.DEVICE_ARCH_BLACKWELL: "Blackwell",
	gonvml.DEVICE_ARCH_RUBIN:     "Rubin",
}

// architecture is empty for one that has no name here. Drivers older than the
// call do not have its symbol, and calling it there would end the process.
func (d *Driver) architecture(failure *error, dev gonvml.Device) string {
	if d.lib.Extensions().LookupSymbol("nvmlDeviceGetArchitecture") != nil {
		return ""
	}
	return architectures[field(failure, "architecture", dev.GetArchitecture, gonvml.DEVICE_ARCH_UNKNOWN)]
}

// busID reads the C string in which the driver gives a PCI address.
func busID(info gonvml.PciInfo) string {
	var b strings.Builder
	for _, c := range info.BusId {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}
