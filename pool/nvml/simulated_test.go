package nvml

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"weir/pool"
)

func simulate(t *testing.T, model string, count int, seed string) pool.Inventory {
	t.Helper()
	inventory, err := Simulated(model, count, seed)
	if err != nil {
		t.Fatal(err)
	}
	return inventory
}

func devices(t *testing.T, inventory pool.Inventory) []pool.DeviceReport {
	t.Helper()
	reports, err := inventory.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reports
}

func TestSimulatedModels(t *testing.T) {
	uuid := regexp.MustCompile(`^GPU-sim-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	for _, c := range []struct {
		model, name, architecture, driver string
		memoryMiB                         int64
	}{
		{"a100", "Mock NVIDIA A100-SXM4-40GB", "Ampere", "550.54.15", 40960},
		{"H100", "NVIDIA H100 80GB HBM3", "Hopper", "550.54.15", 81920},
		{" h200 ", "NVIDIA H200 141GB HBM3e", "Hopper", "550.54.15", 144384},
		{"B200", "NVIDIA B200 180GB HBM3e", "Blackwell", "560.28.03", 184320},
	} {
		for count := 1; count <= MaxSimulated; count++ {
			reports := devices(t, simulate(t, c.model, count, "host"))
			if len(reports) != count {
				t.Fatalf("%d of %d %s", len(reports), count, c.model)
			}
			seen := map[string]bool{}
			for i, got := range reports {
				if !uuid.MatchString(got.UUID) || seen[got.UUID] {
					t.Errorf("UUID %q", got.UUID)
				}
				seen[got.UUID] = true
				want := pool.DeviceReport{UUID: got.UUID, Index: i, Minor: i, Model: c.name, MemoryMiB: c.memoryMiB,
					Architecture: c.architecture, PCIBusID: fmt.Sprintf("0000:%02x:00.0", i), Driver: c.driver, Simulated: true}
				if got != want {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
			}
		}
	}
}

func TestSimulatedUUIDsAreStable(t *testing.T) {
	first := devices(t, simulate(t, "h100", 4, "host"))
	if again := devices(t, simulate(t, "H100", 4, "host")); !reflect.DeepEqual(first, again) {
		t.Errorf("%+v, then %+v", first, again)
	}
	seen := map[string]bool{}
	for _, inventory := range []pool.Inventory{
		simulate(t, "h100", 8, "host"), simulate(t, "h200", 8, "host"), simulate(t, "h100", 8, "host 2"),
	} {
		for _, d := range devices(t, inventory) {
			seen[d.UUID] = true
		}
	}
	if len(seen) != 24 {
		t.Errorf("%d different UUIDs of 24", len(seen))
	}
}

func TestSimulatedRefuses(t *testing.T) {
	for _, c := range []struct {
		model string
		count int
		seed  string
		says  string
	}{
		{"v100", 1, "host", "a100, b200, h100, h200"},
		{"", 1, "host", "a100, b200, h100, h200"},
		{"h100", 0, "host", "from 1 to 8"},
		{"h100", -1, "host", "from 1 to 8"},
		{"h100", 9, "host", "from 1 to 8"},
		{"h100", 1, "", "identity"},
	} {
		inventory, err := Simulated(c.model, c.count, c.seed)
		if err == nil || inventory != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, %v", c, inventory, err)
		}
	}
}

func TestJoin(t *testing.T) {
	reports := devices(t, Join(simulate(t, "a100", 4, "host"), simulate(t, "h100", 2, "host")))
	if len(reports) != 6 {
		t.Fatalf("%d GPUs", len(reports))
	}
	for i, d := range reports {
		if d.Index != i || strings.Contains(d.Model, "A100") != (i < 4) {
			t.Errorf("%d: %+v", i, d)
		}
	}
	if none := devices(t, Join()); len(none) != 0 {
		t.Errorf("%+v", none)
	}
}

type failing struct{ err error }

func (f failing) Devices(context.Context) ([]pool.DeviceReport, error) { return nil, f.err }

func TestJoinFails(t *testing.T) {
	trouble := errors.New("trouble")
	if _, err := Join(simulate(t, "a100", 1, "host"), failing{trouble}).Devices(t.Context()); !errors.Is(err, trouble) {
		t.Error(err)
	}
	twice := Join(simulate(t, "a100", 1, "host"), simulate(t, "a100", 2, "host"))
	if reports, err := twice.Devices(t.Context()); err == nil {
		t.Errorf("the same GPU twice: %+v", reports)
	}
}
