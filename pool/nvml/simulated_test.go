package nvml

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"weir/pool/providers"
)

func simulate(t *testing.T, model string, count int, seed string) *Driver {
	t.Helper()
	driver, err := Config{}.Simulated(model, count, seed)
	if err != nil {
		t.Fatal(err)
	}
	return driver
}

func devices(t *testing.T, inventory providers.Inventory) []providers.DeviceReport {
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
		profiles                          string
	}{
		{"a100", "Mock NVIDIA A100-SXM4-40GB", "Ampere", "550.54.15", 40960, "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb"},
		{"H100", "NVIDIA H100 80GB HBM3", "Hopper", "550.54.15", 81920, "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"},
		{" h200 ", "NVIDIA H200 141GB HBM3e", "Hopper", "550.54.15", 144384, "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"},
		{"B200", "NVIDIA B200 180GB HBM3e", "Blackwell", "560.28.03", 184320, "1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb"},
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
				want := providers.DeviceReport{UUID: got.UUID, Index: i, Minor: i, Model: c.name, MemoryMiB: c.memoryMiB,
					Architecture: c.architecture, PCIBusID: fmt.Sprintf("0000:%02x:00.0", i), Driver: c.driver, Simulated: true,
					MIGProfiles: strings.Fields(c.profiles), NUMA: i / 4, ECC: "on", Peers: others(reports, i)}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
			}
		}
	}
}

// others are the UUIDs of all but one.
func others(reports []providers.DeviceReport, i int) []string {
	var uuids []string
	for j, r := range reports {
		if j != i {
			uuids = append(uuids, r.UUID)
		}
	}
	return uuids
}

func TestSimulatedUUIDsAreStable(t *testing.T) {
	first := devices(t, simulate(t, "h100", 4, "host"))
	if again := devices(t, simulate(t, "H100", 4, "host")); !reflect.DeepEqual(first, again) {
		t.Errorf("%+v, then %+v", first, again)
	}
	seen := map[string]bool{}
	for _, inventory := range []providers.Inventory{
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
		inventory, err := Config{}.Simulated(c.model, c.count, c.seed)
		if err == nil || inventory != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, %v", c, inventory, err)
		}
	}
}
