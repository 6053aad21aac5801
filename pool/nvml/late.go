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

// latePause is the interval between attempts to open a driver.
const latePause = 15 * time.Second

// Late is this machine, whose driver may be loaded after this process has started, as
// while it boots: without GPUs until then. Its methods are safe for concurrent use,
// except Apply with itself.
type Late struct {
	cfg  Config
	open func() (*Driver, error)

	mu     sync.Mutex
	driver *Driver   // nil until it is open
	next   time.Time // of the next attempt to open it
	failed error     // of the last one; nil without a driver
	closed bool
}

var _ providers.Machine = (*Late)(nil)

// Late is this machine; the caller closes it.
func (c Config) Late() *Late {
	return &Late{cfg: c.complete(), open: func() (*Driver, error) { return c.open(gonvml.New()) }}
}

// machine is the driver's, or one without GPUs while there is no driver.
func (l *Late) machine() (providers.Machine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.cfg.Now(); l.driver == nil && !l.closed && !now.Before(l.next) {
		l.driver, l.failed = l.open()
		l.next = now.Add(latePause)
		if errors.Is(l.failed, ErrNoDriver) {
			l.failed = nil
		}
	}
	if l.driver == nil {
		return Join(), l.failed
	}
	return l.driver, nil
}

// Devices implements [providers.Inventory].
func (l *Late) Devices(ctx context.Context) ([]providers.DeviceReport, error) {
	m, err := l.machine()
	if err != nil {
		return nil, err
	}
	return m.Devices(ctx)
}

// Samples implements [providers.Machine].
func (l *Late) Samples(ctx context.Context) ([]providers.Sample, error) {
	m, err := l.machine()
	if err != nil {
		return nil, err
	}
	return m.Samples(ctx)
}

// Faults implements [providers.Machine].
func (l *Late) Faults() []providers.Fault {
	m, _ := l.machine() // Devices returns the error
	return m.Faults()
}

// Apply implements [providers.Machine].
func (l *Late) Apply(ctx context.Context, orders []providers.DeviceOrder) error {
	m, err := l.machine()
	if err != nil {
		return err
	}
	return m.Apply(ctx, orders)
}

// Files is [Driver.Files].
func (l *Late) Files(ctx context.Context, uuid string) ([]string, error) {
	m, err := l.machine()
	if driver, open := m.(*Driver); open {
		return driver.Files(ctx, uuid)
	}
	return nil, errors.Join(err, fmt.Errorf("there is no GPU %s", uuid))
}

// Close closes the driver, if it is open.
func (l *Late) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.driver == nil {
		return nil
	}
	return l.driver.Close()
}
