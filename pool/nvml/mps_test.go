package nvml

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"weir/pool/providers"
)

// mpsMachine is a machine where MPS is installed: the program is a stand-in,
// as NVIDIA's own needs a GPU.
type mpsMachine struct {
	*Driver
	gpu  *busy
	mode gonvml.ComputeMode
	base string // the first GPU's directory
}

func newMPSMachine(t *testing.T, dir string) *mpsMachine {
	t.Helper()
	here, err := filepath.Abs("testdata")
	must(t, err)
	t.Setenv("PATH", here+":"+os.Getenv("PATH"))
	m := &mpsMachine{gpu: &busy{running: map[string][]gonvml.ProcessInfo{}}}
	m.Driver = Config{MPSDir: dir}.machine(func(r *rig) {
		m.gpu.simGPU = r.gpus[0].(*simGPU)
		m.gpu.SetComputeModeFunc = func(mode gonvml.ComputeMode) gonvml.Return {
			m.mode = mode
			return gonvml.SUCCESS
		}
		r.gpus[0] = m.gpu
	})
	m.mps.period = 20 * time.Millisecond
	m.gpu.UUID = "GPU-8f6d9b2c-1111-2222-3333-444455556666"
	m.base = filepath.Join(dir, m.gpu.UUID)
	t.Cleanup(func() {
		must(t, m.Close())
		if pid := m.pid(); pid > 1 {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return m
}

func (m *mpsMachine) pid() int {
	text, _ := os.ReadFile(filepath.Join(m.base, mpsPipe, "nvidia-cuda-mps-control.pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

func (m *mpsMachine) order(t *testing.T, sharing string) error {
	return m.Apply(t.Context(), []providers.DeviceOrder{{UUID: m.gpu.UUID, Sharing: sharing}})
}

func (m *mpsMachine) sharing(t *testing.T) string { return devices(t, m)[0].Sharing }

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	if !await(t.Context(), so) {
		t.Fatal("never: ", what)
	}
}

func TestMPS(t *testing.T) {
	m := newMPSMachine(t, t.TempDir())
	if m.sharing(t) != "" {
		t.Fatal("shared by MPS before it was ordered")
	}
	must(t, m.order(t, "mps"))
	first := m.pid()
	if m.sharing(t) != "mps" || m.mode != gonvml.COMPUTEMODE_EXCLUSIVE_PROCESS || first == 0 {
		t.Fatalf("%q, mode %d, process %d", m.sharing(t), m.mode, first)
	}
	if log, err := os.ReadFile(filepath.Join(m.base, mpsLog, "control.log")); err != nil || string(log) != m.gpu.UUID+"\n" {
		t.Errorf("it sees %q, %v", log, err)
	}
	if _, err := os.Stat(filepath.Join(m.base, mpsShm, "of-the-daemon")); os.Geteuid() == 0 && err != nil {
		t.Errorf("it has no /dev/shm of its own: %v", err)
	}
	must(t, m.order(t, "mps"))
	if m.pid() != first {
		t.Error("it was started twice")
	}
	must(t, m.order(t, "exclusive"))
	if m.sharing(t) != "" || m.mode != gonvml.COMPUTEMODE_DEFAULT {
		t.Errorf("%q, mode %d", m.sharing(t), m.mode)
	}
	if _, err := os.Stat(m.base); !os.IsNotExist(err) {
		t.Errorf("its directory is still there: %v", err)
	}
	m.mode = gonvml.COMPUTEMODE_PROHIBITED // as an administrator may want it
	must(t, m.order(t, "time-slicing"))
	if m.mode != gonvml.COMPUTEMODE_PROHIBITED {
		t.Error("the mode of a GPU without MPS was changed")
	}
}

func TestMPSIsStartedAgain(t *testing.T) {
	m := newMPSMachine(t, t.TempDir())
	must(t, m.order(t, "mps"))
	first := m.pid()
	must(t, syscall.Kill(first, syscall.SIGKILL))
	eventually(t, "another daemon", func() bool { return m.pid() != first && m.sharing(t) == "mps" })
}

// A daemon outlives its agent, and the next one takes it over.
func TestMPSOutlivesItsAgent(t *testing.T) {
	dir := t.TempDir()
	first := newMPSMachine(t, dir)
	must(t, first.order(t, "mps"))
	pid := first.pid()
	must(t, first.Close())
	next := newMPSMachine(t, dir)
	if next.sharing(t) != "mps" {
		t.Error("the next agent does not see it")
	}
	must(t, next.order(t, "mps"))
	if next.pid() != pid {
		t.Error("the next agent starts another")
	}
	must(t, next.order(t, "exclusive"))
	if next.sharing(t) != "" {
		t.Error("the next agent cannot end it")
	}
}

func TestMPSEndsNothing(t *testing.T) {
	m := newMPSMachine(t, t.TempDir())
	m.gpu.running[m.gpu.UUID] = []gonvml.ProcessInfo{{Pid: 1}}
	if err := m.order(t, "mps"); err == nil || !strings.Contains(err.Error(), "MPS cannot begin while processes run on it: 1,") || m.mode != gonvml.COMPUTEMODE_DEFAULT {
		t.Errorf("begun over a process: %v", err)
	}
	if why := devices(t, m)[0].SharingError; why != "MPS cannot begin while processes run on it; it is done when they have ended" {
		t.Errorf("the report says %q", why) // the same whatever runs, and no names
	}
	delete(m.gpu.running, m.gpu.UUID)
	must(t, m.order(t, "mps"))
	must(t, os.WriteFile(filepath.Join(m.base, mpsPipe, "servers"), []byte("41\n42\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(m.base, mpsPipe, "clients-42"), []byte("7\n8\n"), 0o644))
	for _, sharing := range []string{"exclusive", "mig"} {
		if err := m.order(t, sharing); err == nil || !strings.Contains(err.Error(), "serves processes: 2;") {
			t.Errorf("%s: %v", sharing, err)
		}
	}
	if m.sharing(t) != "mps" {
		t.Error("it was ended under its clients")
	}
	must(t, os.Remove(filepath.Join(m.base, mpsPipe, "clients-42")))
	must(t, m.order(t, "mig"))
	if m.sharing(t) != "mig" {
		t.Error("MIG did not follow")
	}
}

func TestMPSThatCannotBe(t *testing.T) {
	m := newMPSMachine(t, t.TempDir())
	must(t, os.MkdirAll(filepath.Join(m.base, mpsPipe), 0o755))
	must(t, os.WriteFile(filepath.Join(m.base, mpsPipe, "broken"), nil, 0o644))
	if err := m.order(t, "mps"); err == nil || !strings.Contains(err.Error(), "cannot find the device") || m.sharing(t) != "" {
		t.Errorf("%v", err)
	}
	if why := devices(t, m)[0].SharingError; !strings.Contains(why, "cannot find the device") {
		t.Errorf("the report says %q", why)
	}
	if m.mode != gonvml.COMPUTEMODE_EXCLUSIVE_PROCESS {
		t.Errorf("mode %d", m.mode)
	}
	must(t, m.order(t, "time-slicing"))
	if why := devices(t, m)[0].SharingError; why != "" {
		t.Errorf("after an order that was applied, the report says %q", why)
	}
	if m.mode != gonvml.COMPUTEMODE_DEFAULT {
		t.Errorf("after a daemon that did not start, the GPU stays in mode %d", m.mode)
	}
	m.gpu.SetComputeModeFunc = func(gonvml.ComputeMode) gonvml.Return { return gonvml.ERROR_NO_PERMISSION }
	if err := m.order(t, "mps"); err == nil || !strings.Contains(err.Error(), "root only") {
		t.Errorf("%v", err)
	}
	m.mps.dir = "/" + strings.Repeat("deep/", 12)
	if err := m.order(t, "mps"); err == nil || !strings.Contains(err.Error(), "at most 107") {
		t.Errorf("%v", err)
	}
	m.mps.dir = t.TempDir()
	t.Setenv("PATH", m.mps.dir)
	if err := m.order(t, "mps"); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("%v", err)
	}
}

// Where nothing can keep MPS, the order is noted and nothing is started.
func TestSimulatedMPS(t *testing.T) {
	d, err := Config{MPSDir: t.TempDir()}.Simulated("a100", 2, "host")
	must(t, err)
	uuid := devices(t, d)[0].UUID
	for _, sharing := range []string{"mps", "mig", "mps", "exclusive"} {
		must(t, d.Apply(t.Context(), []providers.DeviceOrder{{UUID: uuid, Sharing: sharing}}))
		want := sharing
		if sharing == "exclusive" {
			want = ""
		}
		if all := devices(t, d); len(all) != 2 || all[0].Sharing != want || all[1].Sharing != "" || !all[0].Simulated {
			t.Errorf("%s: %+v", sharing, all)
		}
	}
	if files, _ := os.ReadDir(d.cfg.MPSDir); len(files) != 0 {
		t.Errorf("something was started: %v", files)
	}
}
