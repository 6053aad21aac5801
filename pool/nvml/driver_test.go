package nvml

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"weir/pool/providers"
)

func TestNoDriver(t *testing.T) {
	absent := gonvml.New(gonvml.WithLibraryPath(filepath.Join(t.TempDir(), "libnvidia-ml.so.1")))
	if _, err := (Config{}).open(absent); !errors.Is(err, ErrNoDriver) {
		t.Errorf("library absent: %v", err)
	}
	for ret, want := range map[gonvml.Return]bool{
		gonvml.ERROR_DRIVER_NOT_LOADED:       true,
		gonvml.ERROR_LIB_RM_VERSION_MISMATCH: false,
	} {
		lib := dgxh100.New()
		lib.InitFunc = func() gonvml.Return { return ret }
		_, err := Config{}.open(lib)
		if !errors.Is(err, ret) || errors.Is(err, ErrNoDriver) != want {
			t.Errorf("%v: %v", ret, err)
		}
	}
}

// TestThisMachine takes whatever the machine has: a driver or none.
func TestThisMachine(t *testing.T) {
	driver := Config{}.Late()
	defer driver.Close()
	devices, err := driver.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		t.Logf("%+v", d)
		if d.UUID == "" || d.Model == "" || d.Simulated {
			t.Errorf("%+v", d)
		}
	}
}

// TestLibrary goes the whole way through a real shared library.
func TestLibrary(t *testing.T) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Fatal("a C compiler is needed, as for the library's binding itself:", err)
	}
	library := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", library, "testdata/nvml.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	driver, err := Config{SysRoot: t.TempDir()}.open(gonvml.New(gonvml.WithLibraryPath(library)))
	if err != nil {
		t.Fatal(err)
	}
	devices, err := driver.Devices(t.Context())
	want := []providers.DeviceReport{{
		UUID: "GPU-8f6d9b2c-1111-2222-3333-444455556666", Index: 0, Minor: NoMinor,
		Model: "Tesla V100-SXM2-16GB", MemoryMiB: 16160, PCIBusID: "00000000:3B:00.0", Driver: "418.226.00", NUMA: -1,
	}}
	if err != nil || !reflect.DeepEqual(devices, want) {
		t.Errorf("got  %+v, %v\nwant %+v", devices, err, want)
	}
	samples, err := driver.Samples(t.Context())
	if err != nil || !reflect.DeepEqual(samples, []providers.Sample{{UUID: want[0].UUID, MemoryUsedMiB: 160}}) || driver.Faults() != nil {
		t.Errorf("%+v, %v", samples, err)
	}
	if err := driver.Close(); err != nil {
		t.Error(err)
	}
	if devices, err := driver.Devices(t.Context()); !errors.Is(err, gonvml.ERROR_UNINITIALIZED) {
		t.Errorf("after closing: %v, %v", devices, err)
	}
}

// rig is an H100 machine of two GPUs that a test changes: the second of them,
// or what the library answers.
type rig struct {
	*simMachine
	dev    *server.Device // the second GPU, as the mock has it
	count  func() (int, gonvml.Return)
	handle func(int) (gonvml.Device, gonvml.Return)
	set    gonvml.EventSet
	lacks  func(symbol string) bool
}

func (r *rig) Extensions() gonvml.ExtendedInterface                        { return r }
func (r *rig) DeviceGetCount() (int, gonvml.Return)                        { return r.count() }
func (r *rig) EventSetCreate() (gonvml.EventSet, gonvml.Return)            { return r.set, gonvml.SUCCESS }
func (r *rig) DeviceGetHandleByIndex(i int) (gonvml.Device, gonvml.Return) { return r.handle(i) }

func (r *rig) LookupSymbol(symbol string) error {
	if r.lacks(symbol) {
		return errors.New("no such symbol")
	}
	return nil
}

// machine is a driver over a rig, which it takes for a real one.
func machine(change func(*rig)) *Driver { return Config{}.machine(change) }

func (c Config) machine(change func(*rig)) *Driver {
	mock := dgxh100.New()
	mock.Devices = mock.Devices[:2]
	d := c.simulate(mock, machines["h100"])
	sim := d.lib.(*simMachine)
	r := &rig{simMachine: sim, dev: mock.Devices[1].(*server.Device), count: sim.DeviceGetCount, handle: sim.DeviceGetHandleByIndex,
		lacks: func(string) bool { return false }}
	change(r)
	d.lib, d.simulated = r, false
	return d
}

func TestUnsupportedStaysEmpty(t *testing.T) {
	const not = gonvml.ERROR_NOT_SUPPORTED
	driver := machine(func(r *rig) {
		r.SystemGetDriverVersionFunc = func() (string, gonvml.Return) { return "junk", not }
		r.dev.GetNameFunc = func() (string, gonvml.Return) { return "junk", not }
		r.dev.GetMinorNumberFunc = func() (int, gonvml.Return) { return 7, not }
		r.dev.GetMemoryInfoFunc = func() (gonvml.Memory, gonvml.Return) { return gonvml.Memory{Total: 1 << 40}, not }
		r.dev.GetPciInfoFunc = func() (gonvml.PciInfo, gonvml.Return) {
			return gonvml.PciInfo{BusId: [32]int8{'j'}}, not
		}
		r.lacks = func(string) bool { return true }
	})
	devices, err := driver.Devices(t.Context())
	if err != nil || len(devices) != 2 {
		t.Fatalf("%+v, %v", devices, err)
	}
	if want := (providers.DeviceReport{UUID: devices[1].UUID, Index: 1, Minor: NoMinor, NUMA: -1}); !reflect.DeepEqual(devices[1], want) {
		t.Errorf("got  %+v\nwant %+v", devices[1], want)
	}
	samples, err := driver.Samples(t.Context())
	if want := (providers.Sample{UUID: devices[1].UUID}); err != nil || len(samples) != 2 || !reflect.DeepEqual(samples[1], want) {
		t.Errorf("%+v, %v", samples, err)
	}
}

func TestUnknownArchitecture(t *testing.T) {
	driver := machine(func(r *rig) {
		r.dev.GetArchitectureFunc = func() (gonvml.DeviceArchitecture, gonvml.Return) { return 99, gonvml.SUCCESS }
	})
	if devices, err := driver.Devices(t.Context()); err != nil || devices[1].Architecture != "" {
		t.Errorf("%+v, %v", devices, err)
	}
}

func TestUnusableGPUDoesNotHideTheOthers(t *testing.T) {
	for name, change := range map[string]func(*rig){
		"lost": func(r *rig) {
			r.dev.GetNameFunc = func() (string, gonvml.Return) { return "", gonvml.ERROR_GPU_IS_LOST }
		},
		"forbidden": func(r *rig) {
			r.handle = func(i int) (gonvml.Device, gonvml.Return) {
				if i == 1 {
					return nil, gonvml.ERROR_NO_PERMISSION
				}
				return r.simMachine.DeviceGetHandleByIndex(i)
			}
		},
	} {
		devices, err := machine(change).Devices(t.Context())
		if err != nil || len(devices) != 1 || devices[0].Index != 0 {
			t.Errorf("%s: %+v, %v", name, devices, err)
		}
	}
}

func TestFailures(t *testing.T) {
	const trouble = gonvml.ERROR_UNKNOWN
	for name, change := range map[string]func(*rig){
		"version": func(r *rig) {
			r.SystemGetDriverVersionFunc = func() (string, gonvml.Return) { return "", trouble }
		},
		"count": func(r *rig) {
			r.count = func() (int, gonvml.Return) { return 0, trouble }
		},
		"handle": func(r *rig) {
			r.handle = func(int) (gonvml.Device, gonvml.Return) { return nil, trouble }
		},
		"memory": func(r *rig) {
			r.dev.GetMemoryInfoFunc = func() (gonvml.Memory, gonvml.Return) { return gonvml.Memory{}, trouble }
		},
	} {
		if devices, err := machine(change).Devices(t.Context()); !errors.Is(err, trouble) || devices != nil {
			t.Errorf("%s: %+v, %v", name, devices, err)
		}
	}
	nameless := machine(func(r *rig) {
		r.dev.GetUUIDFunc = func() (string, gonvml.Return) { return "", gonvml.ERROR_NOT_SUPPORTED }
	})
	if devices, err := nameless.Devices(t.Context()); err == nil {
		t.Errorf("a GPU without a UUID was reported: %+v", devices)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	driver := machine(func(*rig) {})
	if devices, err := driver.Devices(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", devices, err)
	}
}
