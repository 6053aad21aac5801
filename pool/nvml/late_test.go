package nvml

import (
	"errors"
	"testing"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"

	"weir/pool/providers"
)

// TestLate: the GPUs of a driver that is loaded after the process has started are there
// without another start.
func TestLate(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	late := Config{Now: c.now}.Late()
	loaded, attempts := gonvml.ERROR_DRIVER_NOT_LOADED, 0
	late.open = func() (*Driver, error) {
		attempts++
		if loaded != gonvml.SUCCESS {
			lib := dgxh100.New()
			lib.InitFunc = func() gonvml.Return { return loaded }
			return late.cfg.open(lib)
		}
		return late.cfg.Simulated("h100", 2, "here")
	}
	count := func() int {
		t.Helper()
		list, err := late.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := count(); n != 0 {
		t.Fatalf("%d GPUs without a driver", n)
	}
	if samples, err := late.Samples(t.Context()); err != nil || len(samples)+len(late.Faults()) != 0 {
		t.Errorf("%+v, %v", samples, err)
	}
	if err := late.Apply(t.Context(), []providers.DeviceOrder{{UUID: "GPU-1"}}); err == nil {
		t.Error("an order for a GPU that is not there was carried out")
	}
	if _, err := late.Files(t.Context(), "MIG-1"); err == nil {
		t.Error("a GPU that is not there has files")
	}
	loaded = gonvml.SUCCESS
	if n := count(); n != 0 || attempts != 1 {
		t.Errorf("%d GPUs, %d attempts in no time", n, attempts)
	}
	c.at = c.at.Add(latePause)
	if n := count(); n != 2 || attempts != 2 {
		t.Errorf("%d GPUs after %d attempts", n, attempts)
	}
	if err := late.Close(); err != nil {
		t.Error(err)
	}
}

// TestLateBrokenDriver: a driver that does not open for another reason is an error.
func TestLateBrokenDriver(t *testing.T) {
	late := Config{}.Late()
	broken := gonvml.ERROR_LIB_RM_VERSION_MISMATCH
	late.open = func() (*Driver, error) { return nil, broken }
	if _, err := late.Devices(t.Context()); !errors.Is(err, broken) {
		t.Error(err)
	}
}
