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

	"weir/pool"
)

func TestNoDriver(t *testing.T) {
	absent := gonvml.New(gonvml.WithLibraryPath(filepath.Join(t.TempDir(), "libnvidia-ml.so.1")))
	if _, err := open(absent); !errors.Is(err, ErrNoDriver) {
		t.Errorf("library absent: %v", err)
	}
	for ret, want := range map[gonvml.Return]bool{
		gonvml.ERROR_DRIVER_NOT_LOADED:       true,
		gonvml.ERROR_LIB_RM_VERSION_MISMATCH: false,
	} {
		lib := dgxh100.New()
		lib.InitFunc = func() gonvml.Return { return ret }
		_, err := open(lib)
		if !errors.Is(err, ret) || errors.Is(err, ErrNoDriver) != want {
			t.Errorf("%v: %v", ret, err)
		}
	}
}

// TestThisMachine takes whatever the machine has: a driver or none.
func TestThisMachine(t *testing.T) {
	driver, err := New()
	if errors.Is(err, ErrNoDriver) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
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
		t.Skip("no C compiler")
	}
	library := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", library, "testdata/nvml.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	driver, err := open(gonvml.New(gonvml.WithLibraryPath(library)))
	if err != nil {
		t.Fatal(err)
	}
	devices, err := driver.Devices(t.Context())
	want := []pool.DeviceReport{{
		UUID: "GPU-8f6d9b2c-1111-2222-3333-444455556666", Index: 0, Minor: NoMinor,
		Model: "Tesla V100-SXM2-16GB", MemoryMiB: 16160, PCIBusID: "00000000:3B:00.0", Driver: "418.226.00",
	}}
	if err != nil || !reflect.DeepEqual(devices, want) {
		t.Errorf("got  %+v, %v\nwant %+v", devices, err, want)
	}
	if err := driver.Close(); err != nil {
		t.Error(err)
	}
	if devices, err := driver.Devices(t.Context()); !errors.Is(err, gonvml.ERROR_UNINITIALIZED) {
		t.Errorf("after closing: %v, %v", devices, err)
	}
}

// machine is an H100 machine of two GPUs, the second as a test changes it.
func machine(change func(*server.Server, *server.Device)) *Driver {
	lib := dgxh100.New()
	lib.Devices = lib.Devices[:2]
	change(lib, lib.Devices[1].(*server.Device))
	return &Driver{lib: lib}
}

func TestUnsupportedStaysEmpty(t *testing.T) {
	const not = gonvml.ERROR_NOT_SUPPORTED
	driver := machine(func(lib *server.Server, dev *server.Device) {
		lib.SystemGetDriverVersionFunc = func() (string, gonvml.Return) { return "junk", not }
		dev.GetNameFunc = func() (string, gonvml.Return) { return "junk", not }
		dev.GetMinorNumberFunc = func() (int, gonvml.Return) { return 7, not }
		dev.GetMemoryInfoFunc = func() (gonvml.Memory, gonvml.Return) { return gonvml.Memory{Total: 1 << 40}, not }
		dev.GetArchitectureFunc = func() (gonvml.DeviceArchitecture, gonvml.Return) {
			return gonvml.DEVICE_ARCH_HOPPER, not
		}
		dev.GetPciInfoFunc = func() (gonvml.PciInfo, gonvml.Return) {
			return gonvml.PciInfo{BusId: [32]int8{'j'}}, not
		}
	})
	devices, err := driver.Devices(t.Context())
	if err != nil || len(devices) != 2 {
		t.Fatalf("%+v, %v", devices, err)
	}
	if want := (pool.DeviceReport{UUID: devices[1].UUID, Index: 1, Minor: NoMinor}); devices[1] != want {
		t.Errorf("got  %+v\nwant %+v", devices[1], want)
	}
}

func TestUnknownArchitecture(t *testing.T) {
	driver := machine(func(_ *server.Server, dev *server.Device) {
		dev.GetArchitectureFunc = func() (gonvml.DeviceArchitecture, gonvml.Return) { return 99, gonvml.SUCCESS }
	})
	if devices, err := driver.Devices(t.Context()); err != nil || devices[1].Architecture != "" {
		t.Errorf("%+v, %v", devices, err)
	}
}

func TestUnusableGPUDoesNotHideTheOthers(t *testing.T) {
	for name, change := range map[string]func(*server.Server, *server.Device){
		"lost": func(_ *server.Server, dev *server.Device) {
			dev.GetNameFunc = func() (string, gonvml.Return) { return "", gonvml.ERROR_GPU_IS_LOST }
		},
		"forbidden": func(lib *server.Server, _ *server.Device) {
			handle := lib.DeviceGetHandleByIndexFunc
			lib.DeviceGetHandleByIndexFunc = func(i int) (gonvml.Device, gonvml.Return) {
				if i == 1 {
					return nil, gonvml.ERROR_NO_PERMISSION
				}
				return handle(i)
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
	for name, change := range map[string]func(*server.Server, *server.Device){
		"version": func(lib *server.Server, _ *server.Device) {
			lib.SystemGetDriverVersionFunc = func() (string, gonvml.Return) { return "", trouble }
		},
		"count": func(lib *server.Server, _ *server.Device) {
			lib.DeviceGetCountFunc = func() (int, gonvml.Return) { return 0, trouble }
		},
		"handle": func(lib *server.Server, _ *server.Device) {
			lib.DeviceGetHandleByIndexFunc = func(int) (gonvml.Device, gonvml.Return) { return nil, trouble }
		},
		"memory": func(_ *server.Server, dev *server.Device) {
			dev.GetMemoryInfoFunc = func() (gonvml.Memory, gonvml.Return) { return gonvml.Memory{}, trouble }
		},
	} {
		if devices, err := machine(change).Devices(t.Context()); !errors.Is(err, trouble) || devices != nil {
			t.Errorf("%s: %+v, %v", name, devices, err)
		}
	}
	nameless := machine(func(_ *server.Server, dev *server.Device) {
		dev.GetUUIDFunc = func() (string, gonvml.Return) { return "", gonvml.ERROR_NOT_SUPPORTED }
	})
	if devices, err := nameless.Devices(t.Context()); err == nil {
		t.Errorf("a GPU without a UUID was reported: %+v", devices)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	driver := machine(func(*server.Server, *server.Device) {})
	if devices, err := driver.Devices(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", devices, err)
	}
}
