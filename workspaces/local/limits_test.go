package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
)

func limitOf(t *testing.T, s runtime.Status, resource string) models.Limit {
	t.Helper()
	for _, l := range s.Limits {
		if l.Resource == resource {
			return l
		}
	}
	t.Fatalf("nothing is said of %s: %+v", resource, s.Limits)
	return models.Limit{}
}

func TestMemoryLimit(t *testing.T) {
	r := open(t, config(t.TempDir()))
	spec := scriptSpec(1, "exec python3 -c 'x = bytearray(400 << 20); print(len(x))'")
	spec.Memory, spec.CPU = 128, 500
	state := start(t, r, spec)
	limit := limitOf(t, poll(t, r, state), "memory")
	if !limit.Enforced {
		t.Skipf("memory is %s", limit.How)
	}
	s := reach(t, r, state, runtime.PhaseExited)
	if s.Message.String() != "Jupyter was killed: memory limit of 128 MiB exceeded" || s.ExitCode != 137 {
		t.Errorf("it says %+v", s)
	}
	in, _ := r.parseState(state)
	if _, err := os.Stat(in.Cgroup["memory"]); err != nil {
		t.Errorf("the group: %v", err)
	}
	stop(t, r, state)
	if exists(in.Cgroup["memory"]) || exists(in.Cgroup["cpu"]) {
		t.Error("a cgroup is left")
	}
}

func TestLimitsAreThoseOfWorkspaces(t *testing.T) {
	r := open(t, config(t.TempDir()))
	groups := func() int {
		n := 0
		for _, m := range cgroupMounts() {
			list, _ := filepath.Glob(filepath.Join(m.dir, "weir", cgroupName(filepath.Join(r.config.Dir, "limits"), r.config.Owner)))
			n += len(list)
		}
		return n
	}
	tried := r.Limits()
	if n := groups(); n > 0 {
		t.Errorf("%d cgroups are left", n)
	}
	spec := scriptSpec(1, "sleep 60")
	spec.Memory, spec.CPU = 128, 500
	s := poll(t, r, start(t, r, spec))
	for _, l := range tried {
		if actual := limitOf(t, s, l.Resource); actual.Enforced != l.Enforced {
			t.Errorf("%s: enforced %t, tried %t", l.Resource, actual.Enforced, l.Enforced)
		}
	}
	if len(tried) < 2 {
		t.Errorf("tried %+v", tried)
	}
}

func TestMemoryOfOneKernel(t *testing.T) {
	r := open(t, config(t.TempDir()))
	spec := scriptSpec(1, "python3 -c 'x = bytearray(400 << 20)'; exit 5")
	spec.Memory = 128
	state := start(t, r, spec)
	if limit := limitOf(t, poll(t, r, state), "memory"); !limit.Enforced {
		t.Skipf("memory is %s", limit.How)
	}
	s := reach(t, r, state, runtime.PhaseExited)
	if s.Message.String() != "Jupyter exited with code 5; a process was killed: memory limit of 128 MiB exceeded" {
		t.Errorf("it says %+v", s)
	}
}

func TestEverythingIsInTheGroup(t *testing.T) {
	r := open(t, config(t.TempDir()))
	spec := scriptSpec(1, "exec sleep 600")
	spec.CPU, spec.Memory = 1500, 256
	state := start(t, r, spec)
	in, _ := r.parseState(state)
	if limit := limitOf(t, poll(t, r, state), "cpu"); !limit.Enforced || !strings.Contains(limit.How.String(), "1.5 CPU") {
		t.Skipf("cpu is %s", limit.How)
	}
	notebook := notebookPID(t, in)
	processes := 3
	if in.Network {
		processes++ // its helper
	}
	for controller, dir := range in.Cgroup {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil || len(strings.Fields(string(b))) != processes {
			t.Errorf("%s holds %q, %v; the notebook is %d", controller, b, err, notebook)
		}
	}
}

func TestUnlimited(t *testing.T) {
	r := open(t, config(t.TempDir()))
	state := start(t, r, scriptSpec(1, "exec sleep 600"))
	for _, resource := range []string{"cpu", "memory"} {
		if l := limitOf(t, poll(t, r, state), resource); l.Enforced || l.How.String() != "no limit set" {
			t.Errorf("%+v", l)
		}
	}
}

// cgroup v2 is a matter of files: a directory stands in for the kernel's.
func TestGroupOfVersion2(t *testing.T) {
	root := t.TempDir()
	own := filepath.Join(root, "app.slice", "weir.service")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	parent := filepath.Dir(own)
	for _, dir := range []string{parent, filepath.Join(parent, "weir")} {
		os.Mkdir(dir, 0o755)
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mounts := []cgroupMount{{dir: root, v2: true, controllers: []string{"cpu", "memory"}, own: "/app.slice/weir.service"}}
	dir, v2, err := makeGroup(mounts, "memory", "name")
	if err != nil || !v2 || dir != filepath.Join(parent, "weir", "name") {
		t.Errorf("%s %t %v", dir, v2, err)
	}
	if b, _ := os.ReadFile(filepath.Join(parent, "weir", "cgroup.subtree_control")); string(b) != "+memory" {
		t.Errorf("enabled: %q", b)
	}
	if _, _, err := makeGroup(mounts, "pids", "name"); describeError(err).String() != "the system has no cgroup controller for this resource" {
		t.Errorf("without a controller: %v", err)
	}
	if os.WriteFile(filepath.Join(dir, "memory.events"), []byte("low 0\noom 3\noom_kill 2\noom_group_kill 0\n"), 0o644); (cgroup{"memory": dir}).outOfMemory() != 2 {
		t.Error("the kills were not counted")
	}
}

func TestLogStaysBounded(t *testing.T) {
	r := open(t, config(t.TempDir()))
	state := start(t, r, scriptSpec(1, "head -c 3000000 /dev/zero | tr '\\0' 'x' | fold -w 100; echo; echo last; exec sleep 600"))
	in, _ := r.parseState(state)
	eventually(t, "all is printed", func() bool { return strings.HasSuffix(string(readEnd(in.logFile(), 6)), "\nlast\n") })
	s := poll(t, r, state)
	info, err := os.Stat(in.logFile())
	if err != nil || info.Size() > logKeep+1024 {
		t.Errorf("the log has %d bytes, %v", info.Size(), err)
	}
	if len(s.LogTail) > runtime.MaxLogTail || !strings.HasSuffix(s.LogTail, "x\nlast\n") {
		t.Errorf("the tail has %d bytes and ends with %q", len(s.LogTail), s.LogTail[max(0, len(s.LogTail)-20):])
	}
}

// What a program allocates for the log beyond its end is freed, too.
func TestAllocatedLog(t *testing.T) {
	allocated := func(in *instance) int64 {
		var st unix.Stat_t
		if err := unix.Stat(in.logFile(), &st); err != nil {
			t.Fatal(err)
		}
		return st.Blocks * blockSize
	}
	const script = `echo begun
python3 -c 'import ctypes; ctypes.CDLL(None).fallocate(1, 1, ctypes.c_long(0), ctypes.c_long(200 << 20))' # FALLOC_FL_KEEP_SIZE
echo ended; exec sleep 600`
	r := open(t, config(t.TempDir()))
	state := start(t, r, scriptSpec(1, script))
	in, _ := r.parseState(state)
	eventually(t, "it is allocated", func() bool { return string(readEnd(in.logFile(), 6)) == "ended\n" && allocated(in) > logLimit })
	poll(t, r, state)
	if n := allocated(in); n > logLimit {
		t.Errorf("the log takes %d bytes", n)
	}

	runs := openRuns(t, config(t.TempDir()))
	state = startRun(t, runs, script)
	prints(t, runs, state, "ended")
	in, _ = runs.runtime.parseState(state)
	if _, err := runs.Poll(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	if n := allocated(in); n > runLogLimit {
		t.Errorf("the log of the run takes %d bytes", n)
	}
	if out := logOf(t, runs, state); out != "begun\nended\n" {
		t.Errorf("it says %q", out)
	}
	if err := runs.Stop(t.Context(), state); err != nil {
		t.Fatal(err)
	}
}

func TestDiscover(t *testing.T) {
	all := Discover(t.Context(), testUser)
	if len(all) == 0 {
		t.Fatal("no Jupyter is installed; “tools/setup test” installs it")
	}
	keys := map[string]bool{}
	usable := 0
	for _, d := range all {
		t.Logf("%+v", d)
		if keys[*d.DiscoveredKey] || d.Name == "" || len(d.Command) == 0 || d.DefaultPath == "" {
			t.Errorf("incomplete or twice: %+v", d)
		}
		keys[*d.DiscoveredKey] = true
		if d.Unavailable.Empty() {
			usable++
			if d.Versions["ipykernel"] == "" || !strings.HasPrefix(d.LanguageVersion, "3.") {
				t.Errorf("its versions: %+v", d)
			}
		}
	}
	if usable == 0 {
		t.Error("none can be used")
	}
}

// installed puts a jupyter-lab on the PATH and returns it as it is discovered.
func installed(t *testing.T, dir, interpreter string) models.Environment {
	t.Helper()
	script := filepath.Join(dir, "jupyter-lab")
	if err := os.WriteFile(script, []byte("#!"+interpreter+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, d := range Discover(t.Context(), testUser) {
		if d.Command[0] == script {
			return d
		}
	}
	t.Fatal("it was not found")
	return models.Environment{}
}

func TestBrokenInstallation(t *testing.T) {
	if d := installed(t, t.TempDir(), "/nowhere/python3"); d.Unavailable.Empty() || d.Unchecked() {
		t.Errorf("it can be used: %+v", d)
	}
}

// A check that runs out of time does not tell that an installation is broken.
func TestSlowInstallation(t *testing.T) {
	dir := t.TempDir()
	interpreter := filepath.Join(dir, "python3")
	if err := os.WriteFile(interpreter, []byte("#!/bin/sh\nsleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if d := installed(t, dir, interpreter); !d.Unavailable.Empty() || !d.Unchecked() {
		t.Errorf("it cannot be used: %+v", d)
	}
}

func TestMissingBubblewrap(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := available(identity{uid: testUser, gid: testUser, drop: os.Geteuid() == 0}); err == nil || !strings.Contains(err.Error(), "install the package bubblewrap") {
		t.Errorf("it says %v", err)
	}
}

func TestRefusesRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, err := New(Config{Dir: t.TempDir()}); err == nil {
		t.Error("notebooks would run as root")
	}
}
