package nvml

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"weir/pool/providers"
)

// ErrNoDriver says that the machine has no NVIDIA driver: its library is
// absent, or the kernel module behind it is not loaded. Callers take it as
// "no GPUs here", not as a failure.
var ErrNoDriver = errors.New("nvml: no NVIDIA driver on this machine")

// Config tells a Driver what lies around it. The zero value is this machine
// without MPS.
type Config struct {
	MPSDir  string           // below it each device that is shared by MPS has a directory; empty: MPS is refused
	SysRoot string           // the directory that holds sys and proc; / when empty
	Now     func() time.Time // time.Now when nil
}

// Driver is a machine's GPUs as the management library shows them. Its methods
// are safe for concurrent use, but Apply is called one at a time.
type Driver struct {
	lib       gonvml.Interface
	cfg       Config
	simulated bool
	events    *events // nil where the driver tells none
	mps       *daemons

	mu      sync.Mutex
	ordered map[string]bool // simulated GPUs that were ordered to be shared by MPS
}

var _ providers.Machine = (*Driver)(nil)

// Open opens the driver of this machine and begins to collect its errors; the
// caller closes it. The error is [ErrNoDriver] where there is none.
func (c Config) Open() (*Driver, error) { return c.open(gonvml.New()) }

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

func (c Config) driver(lib gonvml.Interface) *Driver {
	if c.SysRoot == "" {
		c.SysRoot = "/"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Driver{lib: lib, cfg: c, mps: newDaemons(c.MPSDir), ordered: map[string]bool{}}
}

// Close ends what the Driver does in the background and lets go of the
// library; after it the driver reports no devices any more, only an error.
// MPS daemons and MIG instances stay: workspaces outlive their agent, and the
// next Driver finds both again.
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

// gpu is one physical GPU that answers.
type gpu struct {
	gonvml.Device
	providers.DeviceReport
}

// Devices reports every GPU that this process can use, in the driver's order
// and with the driver's index, each followed by its MIG instances, which bear
// the index and the minor number of their GPU. A GPU that has fallen off its
// bus, or that the process may not open, is left out, so that it does not hide
// the others. What the driver does not support stays empty. A single call into
// the driver cannot be interrupted; the context is looked at between GPUs.
func (d *Driver) Devices(ctx context.Context) ([]providers.DeviceReport, error) {
	gpus, err := d.gpus(ctx)
	if err != nil {
		return nil, err
	}
	d.join(gpus)
	reports := make([]providers.DeviceReport, 0, len(gpus))
	for _, g := range gpus {
		reports = append(reports, g.DeviceReport)
		for _, i := range d.instances(g) {
			reports = append(reports, i.DeviceReport)
		}
	}
	return reports, nil
}

func (d *Driver) gpus(ctx context.Context) ([]gpu, error) {
	var failure error
	version := field(&failure, "driver version", d.lib.SystemGetDriverVersion, "")
	count, ret := d.lib.DeviceGetCount()
	if ret != gonvml.SUCCESS {
		failure = errors.Join(failure, fmt.Errorf("count: %w", ret))
	}
	if failure != nil {
		return nil, fmt.Errorf("nvml: %w", failure)
	}
	gpus := make([]gpu, 0, max(count, 0))
	for i := range count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g, err := d.gpu(ctx, i)
		if errors.Is(err, gonvml.ERROR_GPU_IS_LOST) || errors.Is(err, gonvml.ERROR_NO_PERMISSION) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("nvml: GPU %d: %w", i, err)
		}
		g.Driver = version
		gpus = append(gpus, g)
	}
	return gpus, nil
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

// ask calls the driver for what older ones lack: calling a function whose
// symbol is absent would end the process.
func ask[T any](d *Driver, symbol string, get func() (T, gonvml.Return)) (T, gonvml.Return) {
	if d.lib.Extensions().LookupSymbol(symbol) != nil {
		var none T
		return none, gonvml.ERROR_FUNCTION_NOT_FOUND
	}
	return get()
}

// known is what ask finds out, or the fallback: trouble with what is good to
// know does not hide the device.
func known[T any](d *Driver, symbol string, get func() (T, gonvml.Return), fallback T) T {
	if value, ret := ask(d, symbol, get); ret == gonvml.SUCCESS {
		return value
	}
	return fallback
}
