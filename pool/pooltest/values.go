package pooltest

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
)

// PerGPU is what quotas that are left open get for each GPU, besides GPU memory.
var PerGPU = models.Resources{GPUMemoryMiB: 40 << 10, CPUMilli: 8000, MemoryMiB: 32 << 10, StorageMiB: 100 << 10}

// Cores is nothing but GPU cores.
func Cores(n int64) models.Resources { return models.Resources{GPUCores: n} }

// DrawResources draws some of each resource that workspaces take.
func DrawResources(rt *rapid.T, low, high int64) models.Resources {
	n := rapid.Int64Range(low, high)
	return models.Resources{GPUCores: n.Draw(rt, "cores"), GPUMemoryMiB: n.Draw(rt, "gpu memory"), CPUMilli: n.Draw(rt, "cpu")}
}

// Pick draws one of a list, if there is one.
func Pick[T any](rt *rapid.T, list []T) (one T, ok bool) {
	if len(list) == 0 {
		return one, false
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(rt, "index")], true
}

// Error is the error of a call, whatever else it returned.
func Error[T any](_ T, err error) error { return err }

// NoError ends a test when something went wrong.
func NoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantError checks an error's kind, and that it says all of this.
func WantError(t *testing.T, err error, kind models.Kind, says ...string) {
	t.Helper()
	if err == nil || models.KindOf(err) != kind {
		t.Errorf("got %v, want %s", err, kind)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%v does not say %q", err, s)
		}
	}
}
