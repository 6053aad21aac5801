package nvml

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"pgregory.net/rapid"

	"weir/pool/providers"
)

func TestProfileNames(t *testing.T) {
	// MiB as drivers tell them: whole GPU, instance, compute slices.
	for _, c := range []struct {
		whole, memory uint64
		slices        uint32
		name          string
	}{
		{40960, 4864, 1, "1g.5gb"}, {40960, 9856, 2, "2g.10gb"}, {40960, 19968, 3, "3g.20gb"}, {40960, 40192, 7, "7g.40gb"},
		{81559, 9984, 1, "1g.10gb"}, {81559, 40448, 4, "4g.40gb"}, {81559, 81152, 7, "7g.80gb"},
		{143771, 16384, 1, "1g.18gb"}, {143771, 70912, 3, "3g.71gb"}, {143771, 143360, 7, "7g.141gb"},
		{95830, 11008, 1, "1g.12gb"}, {95830, 47488, 3, "3g.47gb"},
		{24576, 5952, 1, "1g.6gb"}, {24576, 24064, 4, "4g.24gb"},
	} {
		if got := profileName(c.slices, c.memory, c.whole); got != c.name {
			t.Errorf("%d of %d MiB: %s, not %s", c.memory, c.whole, got, c.name)
		}
	}
}

func TestInstancesNeverHaveMoreThanTheGPU(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.Uint32Range(1, 8).Draw(t, "slices of the GPU")
		left, cores := all, int64(0)
		for left > 0 {
			one := rapid.Uint32Range(1, left).Draw(t, "slices of an instance")
			got := migCores(one, all)
			if got < 1 || one == all && got != 100 {
				t.Fatalf("%d of %d slices are %d cores", one, all, got)
			}
			cores, left = cores+got, left-one
		}
		if cores > 100 {
			t.Fatalf("%d cores", cores)
		}
	})
}

// mig orders a layout for the first GPU.
func mig(t *testing.T, d *Driver, layout ...string) error {
	t.Helper()
	return d.Apply(t.Context(), []providers.DeviceOrder{{UUID: devices(t, d)[0].UUID, Sharing: "mig", Layout: layout}})
}

// cut is what the first GPU is cut into.
func cut(t *testing.T, d *Driver) (profiles []string, uuids []string) {
	t.Helper()
	all := devices(t, d)
	for _, r := range all {
		if r.Parent == all[0].UUID {
			profiles, uuids = append(profiles, r.Profile), append(uuids, r.UUID)
		}
	}
	return profiles, uuids
}

// Every model can be cut into every profile, as often as there is room, and
// back.
func TestSimulatedMIG(t *testing.T) {
	for model := range machines {
		d := simulate(t, model, 2, "host")
		whole := devices(t, d)[0]
		for _, profile := range whole.MIGProfiles {
			if err := mig(t, d, profile); err != nil {
				t.Fatalf("%s %s: %v", model, profile, err)
			}
			all := devices(t, d)
			if len(all) != 3 || all[0].Sharing != "mig" {
				t.Fatalf("%s %s: %+v", model, profile, all)
			}
			got := all[1]
			want := whole
			want.UUID, want.Parent, want.Profile, want.Cores, want.MemoryMiB = got.UUID, whole.UUID, profile, migCores(uint32(profile[0]-'0'), 7), got.MemoryMiB
			want.Peers, want.MIGProfiles = nil, nil
			if !reflect.DeepEqual(got, want) || !strings.HasPrefix(got.UUID, SimulatedMIGPrefix) || got.MemoryMiB < 4000 || got.MemoryMiB > whole.MemoryMiB {
				t.Errorf("%s:\ngot  %+v\nwant %+v", model, got, want)
			}
		}
		if err := d.Apply(t.Context(), []providers.DeviceOrder{{UUID: whole.UUID, Sharing: "exclusive"}}); err != nil {
			t.Fatal(err)
		}
		if all := devices(t, d); len(all) != 2 || !reflect.DeepEqual(all[0], whole) {
			t.Errorf("%s is not whole again: %+v", model, all)
		}
	}
}

func TestLayouts(t *testing.T) {
	d := simulate(t, "h100", 1, "host")
	for _, c := range []struct {
		layout, got, refused string
	}{
		{"3g.40gb 3g.40gb", "3g.40gb 3g.40gb", ""},
		{"1g.10gb 3g.40gb 3g.40gb", "3g.40gb 3g.40gb", "1g.10gb"}, // all memory is taken
		{"4g.40gb 3g.40gb", "3g.40gb 4g.40gb", ""},
		{"1G.10GB 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb", strings.Repeat("1g.10gb ", 7), ""},
		{"7g.80gb", "7g.80gb", ""},
		{"2g.20gb 1g.10gb+me 4g.40gb", "1g.10gb+me 2g.20gb 4g.40gb", ""},
		{"1g.10gb+me 1g.10gb+me", "1g.10gb+me", "1g.10gb+me"},
		{"5g.50gb", "1g.10gb+me", "5g.50gb"},
		{"", "", ""},
	} {
		err := mig(t, d, strings.Fields(c.layout)...)
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v", c.layout, err)
		}
		got, uuids := cut(t, d)
		slices.Sort(got)
		if !slices.Equal(got, strings.Fields(c.got)) {
			t.Errorf("%s: %q", c.layout, got)
		}
		if slices.Sort(uuids); len(slices.Compact(uuids)) != len(got) {
			t.Errorf("%s: two instances have one UUID: %q", c.layout, uuids)
		}
	}
}

// What is there already stays, with its UUID, and the same layout has the same
// UUIDs on a machine that starts anew.
func TestLayoutIsIdempotent(t *testing.T) {
	d := simulate(t, "h100", 1, "host")
	must(t, mig(t, d, "2g.20gb", "2g.20gb", "1g.10gb"))
	_, first := cut(t, d)
	must(t, mig(t, d, "1g.10gb", "2g.20gb", "2g.20gb"))
	if _, again := cut(t, d); !slices.Equal(first, again) {
		t.Errorf("%q, then %q", first, again)
	}
	must(t, mig(t, d, "2g.20gb", "2g.20gb", "2g.20gb"))
	_, more := cut(t, d)
	for _, uuid := range first[:2] {
		if !slices.Contains(more, uuid) {
			t.Errorf("%s is gone: %q", uuid, more)
		}
	}
	anew := simulate(t, "h100", 1, "host")
	must(t, mig(t, anew, "1g.10gb", "2g.20gb", "2g.20gb"))
	if _, uuids := cut(t, anew); !slices.Equal(uuids, first) {
		t.Errorf("%q, after a start %q", first, uuids)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// busy is a GPU in whose instances processes run, and whose MIG mode waits for
// a reset while reset is true.
type busy struct {
	*simGPU
	running map[string][]gonvml.ProcessInfo // by UUID
	reset   bool
	pending int
}

func (b *busy) GetComputeRunningProcesses() ([]gonvml.ProcessInfo, gonvml.Return) {
	return b.running[b.UUID], gonvml.SUCCESS
}

func (b *busy) GetMigDeviceHandleByIndex(i int) (gonvml.Device, gonvml.Return) {
	dev, ret := b.simGPU.GetMigDeviceHandleByIndex(i)
	if ret != gonvml.SUCCESS {
		return nil, ret
	}
	return &busyInstance{dev.(*simInstance), b.running}, ret
}

func (b *busy) SetMigMode(mode int) (gonvml.Return, gonvml.Return) {
	if b.pending = mode; b.reset {
		return gonvml.ERROR_RESET_REQUIRED, gonvml.SUCCESS
	}
	return b.simGPU.SetMigMode(mode)
}

func (b *busy) GetMigMode() (int, int, gonvml.Return) {
	current, _, ret := b.simGPU.GetMigMode()
	return current, b.pending, ret
}

type busyInstance struct {
	*simInstance
	running map[string][]gonvml.ProcessInfo
}

func (b *busyInstance) GetComputeRunningProcesses() ([]gonvml.ProcessInfo, gonvml.Return) {
	uuid, _ := b.GetUUID()
	return b.running[uuid], gonvml.SUCCESS
}

func busyMachine() (*Driver, *busy) {
	b := &busy{running: map[string][]gonvml.ProcessInfo{}}
	d := machine(func(r *rig) {
		b.simGPU = r.gpus[0].(*simGPU)
		r.gpus[0] = b
	})
	return d, b
}

func TestWhatRunsKeepsItsInstance(t *testing.T) {
	d, gpu := busyMachine()
	gpu.running[gpu.UUID] = []gonvml.ProcessInfo{{Pid: 1}}
	if err := mig(t, d, "3g.40gb"); err == nil || !strings.Contains(err.Error(), "MIG cannot begin while processes run on it: 1,") {
		t.Errorf("begun while a process runs: %v", err)
	}
	delete(gpu.running, gpu.UUID)
	must(t, mig(t, d, "3g.40gb", "2g.20gb"))
	_, uuids := cut(t, d)
	gpu.running[uuids[0]] = []gonvml.ProcessInfo{{Pid: 1}, {Pid: 2}}
	if err := mig(t, d, "2g.20gb"); err == nil || !strings.Contains(err.Error(), uuids[0]) || !strings.Contains(err.Error(), "run on it: 2,") {
		t.Errorf("removed while processes run: %v", err)
	}
	if err := mig(t, d, "3g.40gb", "4g.40gb"); err != nil {
		t.Errorf("the idle one is not replaced: %v", err)
	}
	if got, _ := cut(t, d); !slices.Equal(got, []string{"3g.40gb", "4g.40gb"}) {
		t.Errorf("%q", got)
	}
	err := d.Apply(t.Context(), []providers.DeviceOrder{{UUID: gpu.UUID, Sharing: "exclusive"}})
	if got, _ := cut(t, d); err == nil || len(got) != 2 {
		t.Errorf("ended while processes run: %v, %q", err, got)
	}
}

// narrow is a GPU that can place a large instance only before any other.
type narrow struct{ *simGPU }

func (n narrow) CreateGpuInstance(wanted *gonvml.GpuInstanceProfileInfo) (gonvml.GpuInstance, gonvml.Return) {
	if wanted.SliceCount >= 4 && len(n.gpuInstances()) > 0 {
		return nil, gonvml.ERROR_INSUFFICIENT_RESOURCES
	}
	return n.simGPU.CreateGpuInstance(wanted)
}

func TestIdleInstancesMakeRoom(t *testing.T) {
	d := simulate(t, "h100", 1, "host")
	sim := d.lib.(*simMachine)
	sim.gpus[0] = narrow{sim.gpus[0].(*simGPU)}
	must(t, mig(t, d, "2g.20gb"))
	must(t, mig(t, d, "2g.20gb", "4g.40gb"))
	if got, _ := cut(t, d); !slices.Equal(got, []string{"4g.40gb", "2g.20gb"}) {
		t.Errorf("%q", got)
	}
}

func TestMIGThatWaitsForAReset(t *testing.T) {
	d, gpu := busyMachine()
	gpu.reset = true
	if err := mig(t, d, "3g.40gb"); err == nil || !strings.Contains(err.Error(), "reset") {
		t.Errorf("%v", err)
	}
	if r := devices(t, d)[0]; !strings.Contains(r.Trouble, "must be reset") || r.Sharing != "" {
		t.Errorf("%+v", r)
	}
	gpu.reset = false // as a reset would do
	must(t, mig(t, d, "3g.40gb"))
	if all := devices(t, d); all[0].Trouble != "" || all[0].Sharing != "mig" || len(all) != 3 {
		t.Errorf("%+v", all)
	}
}

func TestOrdersThatCannotBe(t *testing.T) {
	d := machine(func(r *rig) {
		r.lacks = func(symbol string) bool {
			return strings.Contains(symbol, "Mig") || strings.Contains(symbol, "GpuInstance")
		}
	})
	uuid := devices(t, d)[0].UUID
	for sharing, says := range map[string]string{"mig": "cannot be cut", "mps": "no directory", "half": "time-slicing"} {
		err := d.Apply(t.Context(), []providers.DeviceOrder{{UUID: uuid, Sharing: sharing}})
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), uuid) {
			t.Errorf("%s: %v", sharing, err)
		}
	}
	must(t, d.Apply(t.Context(), []providers.DeviceOrder{{UUID: uuid, Sharing: "exclusive"}, {UUID: uuid, Sharing: "time-slicing"}}))
}

// The kernel module names the device files of an instance.
func TestFiles(t *testing.T) {
	root := t.TempDir()
	d, err := Config{SysRoot: root}.Simulated("h100", 2, "host")
	must(t, err)
	must(t, mig(t, d, "3g.40gb"))
	_, uuids := cut(t, d)
	if files, err := d.Files(t.Context(), uuids[0]); err == nil {
		t.Errorf("files without a kernel module: %q", files)
	}
	caps := filepath.Join(root, "proc/driver/nvidia/capabilities/gpu0/mig")
	gi := filepath.Join(caps, "gi0")
	must(t, os.MkdirAll(filepath.Join(gi, "ci0"), 0o755))
	must(t, os.WriteFile(filepath.Join(gi, "access"), []byte("DeviceFileMinor: 12\nDeviceFileMode: 292\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(gi, "ci0/access"), []byte("DeviceFileMinor: 13\n"), 0o644))
	for uuid, want := range map[string][]string{
		uuids[0]:              {"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"},
		devices(t, d)[2].UUID: {"/dev/nvidia1"},
	} {
		if files, err := d.Files(t.Context(), uuid); err != nil || !slices.Equal(files, want) {
			t.Errorf("%s: %q, %v", uuid, files, err)
		}
	}
	if _, err := d.Files(t.Context(), "GPU-elsewhere"); err == nil {
		t.Error("files of a GPU that is not here")
	}
}
