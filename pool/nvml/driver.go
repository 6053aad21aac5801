package nvml

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"weir/pool/providers"
)

// ErrNoDriver means that the machine has no NVIDIA driver: its library is absent, or
// the kernel module is not loaded.
var ErrNoDriver = errors.New("nvml: no NVIDIA driver on this machine")

// Config configures a Driver. The zero value is this machine without MPS.
type Config struct {
	MPSDir  string           // contains a directory for each device with MPS; empty: MPS is refused
	SysRoot string           // the directory that holds sys and proc; / when empty
	Now     func() time.Time // time.Now when nil
}

// Driver manages a machine's GPUs with the management library. Its methods are safe
// for concurrent use, except Apply with itself.
type Driver struct {
	lib       gonvml.Interface
	cfg       Config
	simulated bool
	events    *events // nil if the driver has none
	mps       *daemons

	mu      sync.Mutex
	ordered map[string]bool   // simulated GPUs with MPS
	refused map[string]string // why the last order for a GPU failed
}

var _ providers.Machine = (*Driver)(nil)

// open opens a driver and starts to collect its errors; the caller closes it. The error is
// [ErrNoDriver] if there is none.
func (c Config) open(lib gonvml.Interface) (*Driver, error) {
	switch ret := lib.Init(); ret {
	case gonvml.SUCCESS:
	case gonvml.ERROR_LIBRARY_NOT_FOUND, gonvml.ERROR_DRIVER_NOT_LOADED:
		return nil, fmt.Errorf("%w (%w)", ErrNoDriver, ret)
	default:
		return nil, fmt.Errorf("nvml: open the driver: %w", ret)
	}
	d := c.driver(lib)
	d.events = d.listen()
	return d, nil
}

// complete sets what is not set.
func (c Config) complete() Config {
	c.SysRoot = cmp.Or(c.SysRoot, "/")
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) driver(lib gonvml.Interface) *Driver {
	return &Driver{lib: lib, cfg: c.complete(), mps: newDaemons(c.MPSDir), ordered: map[string]bool{}, refused: map[string]string{}}
}

// Close stops the background work and closes the library. MPS daemons and MIG
// instances stay: workspaces outlive the agent, and the next Driver finds both.
func (d *Driver) Close() error {
	d.mps.close()
	if d.events != nil {
		d.events.close()
	}
	if ret := d.lib.Shutdown(); ret != gonvml.SUCCESS {
		return fmt.Errorf("nvml: close the driver: %w", ret)
	}
	return nil
}

// gpu is a physical GPU or, in an instance, its MIG instance.
type gpu struct {
	gonvml.Device
	providers.DeviceReport
}

// NoMinor is an unknown minor number of a device.
const NoMinor = -1

var errNoUUID = errors.New("the driver returns no UUID")

// field calls the driver. It returns the fallback if the call is not supported, and
// adds other errors to failure.
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

// query calls a function that older drivers lack. Calling an absent symbol would crash
// the process.
func query[T any](d *Driver, symbol string, get func() (T, gonvml.Return)) (T, gonvml.Return) {
	if d.lib.Extensions().LookupSymbol(symbol) != nil {
		var none T
		return none, gonvml.ERROR_FUNCTION_NOT_FOUND
	}
	return get()
}

// queryOr is ask for optional values: errors return the fallback.
func queryOr[T any](d *Driver, symbol string, get func() (T, gonvml.Return), fallback T) T {
	if value, ret := query(d, symbol, get); ret == gonvml.SUCCESS {
		return value
	}
	return fallback
}
