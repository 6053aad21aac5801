package nvml

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"weir/pool/providers"
)

// clock is moved by hand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func samples(t *testing.T, m providers.Machine) []providers.Sample {
	t.Helper()
	list, err := m.Samples(t.Context())
	must(t, err)
	return list
}

// The load of simulated GPUs is what their shares use, and nothing else varies.
func TestSimulatedTelemetry(t *testing.T) {
	d, err := Config{}.Simulated("h100", 3, "host")
	must(t, err)
	for _, s := range samples(t, d) {
		if want := (providers.Sample{UUID: s.UUID, Temperature: 30, PowerMW: 70_000}); !reflect.DeepEqual(s, want) {
			t.Fatalf("without shares %+v", s)
		}
	}
	busy := []int64{100, 40, 0}
	var orders []providers.DeviceOrder
	for i, r := range devices(t, d) {
		orders = append(orders, providers.DeviceOrder{UUID: r.UUID, Sharing: "time-slicing", Busy: busy[i]})
	}
	must(t, d.Apply(t.Context(), orders))
	for i, s := range samples(t, d) {
		if s.Utilisation != busy[i] || s.MemoryUsedMiB > 81920 || s.Temperature > 70 || s.PowerMW > 700_000 || (s.MemoryUsedMiB > 0) != (busy[i] > 0) {
			t.Errorf("with %d busy cores %+v", busy[i], s)
		}
	}
}

// An instance tells its memory, and nothing that belongs to the whole GPU.
func TestInstancesAreMeasured(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	d, err := Config{Now: c.now}.Simulated("h100", 1, "host")
	must(t, err)
	must(t, d.Apply(t.Context(), []providers.DeviceOrder{{UUID: devices(t, d)[0].UUID, Sharing: "mig", Layout: []string{"3g.40gb"}, Busy: 42}}))
	_, uuids := cut(t, d)
	list := samples(t, d)
	if len(list) != 2 || list[0].PowerMW <= 70_000 {
		t.Fatalf("%+v", list)
	}
	if s := list[1]; s.UUID != uuids[0] || s.MemoryUsedMiB < 1 || s.MemoryUsedMiB > 40960 || s.Utilisation+s.Temperature+s.PowerMW != 0 {
		t.Errorf("%+v", s)
	}
}

func TestProcesses(t *testing.T) {
	root := t.TempDir()
	for pid, name := range map[string]string{"17": "python3\n", "18": "bad\xffname\n"} {
		must(t, os.MkdirAll(filepath.Join(root, "proc", pid), 0o755))
		must(t, os.WriteFile(filepath.Join(root, "proc", pid, "comm"), []byte(name), 0o644))
	}
	d, gpu := busyMachine()
	d.cfg.SysRoot = root
	gpu.running[gpu.UUID] = []gonvml.ProcessInfo{{Pid: 18, UsedGpuMemory: 1 << 30}, {Pid: 17, UsedGpuMemory: 3 << 30}, {Pid: 19, UsedGpuMemory: 1<<64 - 1}}
	want := []providers.Process{{PID: 17, Name: "python3", MemoryMiB: 3072}, {PID: 18, Name: "bad?name", MemoryMiB: 1024}, {PID: 19}}
	if got := samples(t, d)[0].Processes; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for pid := range 100 {
		gpu.running[gpu.UUID] = append(gpu.running[gpu.UUID], gonvml.ProcessInfo{Pid: uint32(1000 + pid)})
	}
	if got := samples(t, d)[0].Processes; len(got) != maxProcesses || got[0].PID != 17 {
		t.Errorf("%d: %+v", len(got), got)
	}
}

// wired is a GPU with links of a test's choice.
type wired struct {
	*simGPU
	ends []string // PCI addresses; "switch", or empty for a link that is down
}

func (w *wired) GetNvLinkState(link int) (gonvml.EnableState, gonvml.Return) {
	if link >= len(w.ends) {
		return gonvml.FEATURE_DISABLED, gonvml.ERROR_INVALID_ARGUMENT
	}
	if w.ends[link] == "" {
		return gonvml.FEATURE_DISABLED, gonvml.SUCCESS
	}
	return gonvml.FEATURE_ENABLED, gonvml.SUCCESS
}

func (w *wired) GetNvLinkRemoteDeviceType(link int) (gonvml.IntNvLinkDeviceType, gonvml.Return) {
	if w.ends[link] == "switch" {
		return gonvml.NVLINK_DEVICE_TYPE_SWITCH, gonvml.SUCCESS
	}
	return gonvml.NVLINK_DEVICE_TYPE_GPU, gonvml.SUCCESS
}

func (w *wired) GetNvLinkRemotePciInfo(link int) (info gonvml.PciInfo, ret gonvml.Return) {
	for i, c := range w.ends[link] {
		info.BusId[i] = int8(c)
	}
	return info, gonvml.SUCCESS
}

func TestPeers(t *testing.T) {
	d := simulate(t, "h100", 4, "host")
	sim := d.lib.(*simMachine)
	for i, ends := range [][]string{
		{"00000000:01:00.0", "", "00000000:01:00.0"}, // a pair
		{"00000000:00:00.0"},
		{"", ""},                       // all links are down
		{"switch", "00000000:7F:00.0"}, // one end is no GPU of this machine
	} {
		sim.gpus[i] = &wired{sim.gpus[i].(*simGPU), ends}
	}
	all := devices(t, d)
	for i, want := range [][]string{{all[1].UUID}, {all[0].UUID}, nil, nil} {
		if !reflect.DeepEqual(all[i].Peers, want) {
			t.Errorf("%d: %q", i, all[i].Peers)
		}
	}
}

type elsewhere struct{ *simGPU }

func (e elsewhere) GetMemoryAffinity(int, gonvml.AffinityScope) ([]uint, gonvml.Return) {
	return []uint{0b11}, gonvml.SUCCESS // the driver names two
}

func (e elsewhere) GetEccMode() (gonvml.EnableState, gonvml.EnableState, gonvml.Return) {
	return gonvml.FEATURE_DISABLED, gonvml.FEATURE_ENABLED, gonvml.SUCCESS
}

func TestNodeFromLinux(t *testing.T) {
	root := t.TempDir()
	d, err := Config{SysRoot: root}.Simulated("h100", 1, "host")
	must(t, err)
	sim := d.lib.(*simMachine)
	sim.gpus[0] = elsewhere{sim.gpus[0].(*simGPU)}
	if r := devices(t, d)[0]; r.NUMA != -1 || r.ECC != "off" || r.ECCErrors != 0 {
		t.Errorf("%+v", r)
	}
	file := filepath.Join(root, "sys/bus/pci/devices/0000:00:00.0/numa_node")
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	for text, want := range map[string]int{"3\n": 3, "-1\n": -1, "none": -1} {
		must(t, os.WriteFile(file, []byte(text), 0o644))
		if got := devices(t, d)[0].NUMA; got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
	if got := pciAddress("00000000:3B:00.0"); got != "0000:3b:00.0" {
		t.Error(got)
	}
	if got := pciAddress("00010000:01:00.0"); got != "10000:01:00.0" {
		t.Error(got)
	}
}

// listening is a machine whose second GPU tells of errors.
func listening(t *testing.T, c *clock) (*Driver, chan<- gonvml.EventData, *rig) {
	events := make(chan gonvml.EventData)
	var it *rig
	d := Config{Now: c.now}.machine(func(r *rig) {
		it = r
		r.set = &mock.EventSet{
			WaitFunc: func(uint32) (gonvml.EventData, gonvml.Return) {
				if e, open := <-events; open {
					if e.Device == nil {
						return e, gonvml.ERROR_TIMEOUT
					}
					return e, gonvml.SUCCESS
				}
				return gonvml.EventData{}, gonvml.ERROR_TIMEOUT
			},
			FreeFunc: func() gonvml.Return { return gonvml.SUCCESS },
		}
		for _, dev := range r.gpus {
			g := dev.(*simGPU)
			g.RegisterEventsFunc = func(types uint64, _ gonvml.EventSet) gonvml.Return {
				if g == r.gpus[0] || types != gonvml.EventTypeXidCriticalError {
					return gonvml.ERROR_NOT_SUPPORTED
				}
				return gonvml.SUCCESS
			}
		}
	})
	d.events = d.listen()
	t.Cleanup(func() {
		close(events)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, events, it
}

func TestFaults(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	d, events, r := listening(t, c)
	second := devices(t, d)[1].UUID
	tell := func(dev gonvml.Device, xid uint64) {
		events <- gonvml.EventData{Device: dev, EventType: gonvml.EventTypeXidCriticalError, EventData: xid}
	}
	tell(r.gpus[1], 31)
	tell(r.gpus[0], 79)          // was not asked for
	events <- gonvml.EventData{} // all before it has been taken in
	if r := devices(t, d)[1]; r.Trouble != "" {
		t.Errorf("a program's error is the GPU's: %q", r.Trouble)
	}
	tell(r.gpus[1], 95)
	events <- gonvml.EventData{}
	c.at = c.at.Add(3 * time.Second)
	want := []providers.Fault{{UUID: second, XID: 31, Age: 3 * time.Second}, {UUID: second, XID: 95, Age: 3 * time.Second}}
	if got := d.Faults(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if again := d.Faults(); len(again) != 0 {
		t.Errorf("told twice: %+v", again)
	}
	if all := devices(t, d); !strings.HasPrefix(all[1].Trouble, "XID 95: ") || all[0].Trouble != "" {
		t.Errorf("%q, %q", all[0].Trouble, all[1].Trouble)
	}
	r.gpus[1].(*simGPU).recovery = gonvml.GPU_RECOVERY_ACTION_GPU_RESET
	d.events.worst = map[string]int64{} // as in the next process
	if all := devices(t, d); all[1].Trouble != "an error; the GPU must be reset" || all[0].Trouble != "" {
		t.Errorf("an error before this process: %q, %q", all[0].Trouble, all[1].Trouble)
	}
	for xid := range uint64(300) {
		tell(r.gpus[1], 1000+xid)
	}
	events <- gonvml.EventData{}
	if got := d.Faults(); len(got) != maxFaults || got[len(got)-1].XID != 1299 {
		t.Errorf("%d faults", len(got))
	}
}
