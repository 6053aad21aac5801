package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
	"weir/workspaces/runtimetest"
)

// everyCommandLine joins the command lines of all processes of this machine.
func everyCommandLine(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		b, _ := os.ReadFile(f)
		all.Write(b)
		all.WriteByte('\n')
	}
	return all.String()
}

func TestTokenIsInNoCommandLine(t *testing.T) {
	r := open(t, config(t.TempDir()))
	spec := notebookSpec(1)
	reach(t, r, start(t, r, spec), runtime.PhaseRunning)
	all := everyCommandLine(t)
	if !strings.Contains(all, r.path(key{1, 1})) {
		t.Error("the sandbox cannot be found by its command line")
	}
	if strings.Contains(all, spec.Token) {
		t.Error("the token stands in a command line")
	}
}

func TestInsideOfTheSandbox(t *testing.T) {
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "secret"), []byte("of the portal"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := open(t, config(filepath.Join(data, "run")))
	spec := scriptSpec(7, `
		id -un; id -u; echo "home=$HOME pwd=$PWD host=$(hostname) extra=$EXTRA runtime=$JUPYTER_RUNTIME_DIR"
		getent hosts ws-7
		ls -d `+data+` /root /var /srv 2>/dev/null
		ls /etc/shadow /etc/sudoers /etc/ssl/private 2>/dev/null
		grep -E "^(CapEff|CapBnd|NoNewPrivs|NSpid)" /proc/self/status
		touch /x 2>/dev/null && echo "root is writable"
		touch /usr/x 2>/dev/null && echo "usr is writable"
		unshare -U true 2>/dev/null && echo "user namespaces are open"
		echo "processes=$(ls -d /proc/[0-9]* | wc -l)"
		echo "descriptors=$(ls /proc/self/fd | tr "\n" " ")"
		df -m /dev/shm | tail -1
		touch /tmp/mine ~/mine && echo "private places are writable"
		ls -A /tmp ~`)
	spec.Shm = 48 << 1
	spec.Env = map[string]string{"EXTRA": "given", "HOME": "/nowhere"}
	out := output(t, r, spec)
	for _, want := range []string{
		"jovyan\n1000\n", "home=/home/jovyan pwd=/home/jovyan host=ws-7 extra=given runtime=/run/user/jupyter",
		"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "descriptors=0 1 2 3 \n",
		"private places are writable", " 96 ", "127.0.1.1",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q", want)
		}
	}
	for _, never := range []string{data, "/root", "/var", "/srv", "shadow", "sudoers", "private\n/", "is writable\n/", "namespaces are open", "root is", "usr is"} {
		if strings.Contains(out, never) {
			t.Errorf("has %q", never)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestGPUVariablesAndDevices(t *testing.T) {
	r := open(t, config(t.TempDir()))
	show := `env | grep -E "^(NVIDIA|CUDA|WEIR_GPU)" | sort; ls /dev | grep nvidia; echo end`
	none := output(t, r, scriptSpec(1, show))
	if want := "CUDA_VISIBLE_DEVICES=\nNVIDIA_VISIBLE_DEVICES=void\nend\n"; none != want {
		t.Errorf("without a GPU:\n%s", none)
	}
	spec := scriptSpec(2, show)
	spec.GPUs = []runtime.GPU{
		{UUID: "GPU-a", Minor: 0, Cores: 50, MemoryMiB: 4096, Simulated: true, Enforcement: "advisory"},
		{UUID: "GPU-b", Minor: 1, Cores: 100, MemoryMiB: 8192, Simulated: true, Enforcement: "exclusive"},
	}
	want := "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b\nNVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b\nWEIR_GPU_CORES=50,100\n" +
		"WEIR_GPU_ENFORCEMENT=advisory,exclusive\nWEIR_GPU_MEMORY_MIB=4096,8192\nWEIR_GPU_SIMULATED=1\nend\n"
	if got := output(t, r, spec); got != want {
		t.Errorf("with simulated GPUs:\n%s", got)
	}
}

func TestDeviceFiles(t *testing.T) {
	r, s := &Runtime{}, &sandbox{}
	r.bindGPUs(t.Context(), s, []runtime.GPU{{Minor: 0, Simulated: true, Enforcement: "mps"}})
	if len(s.args) != 0 {
		t.Errorf("a simulated GPU shows %v", s.args)
	}
	r.bindGPUs(t.Context(), s, []runtime.GPU{{Minor: 3}, {Minor: 4, Simulated: true}})
	all := strings.Join(s.args, " ")
	for _, want := range []string{"/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"} {
		if !strings.Contains(all, "--dev-bind-try "+want+" "+want) {
			t.Errorf("%s is not shown: %s", want, all)
		}
	}
	if strings.Contains(all, "/dev/nvidia4") || strings.Contains(all, "/dev/nvidia0") {
		t.Errorf("more is shown than is in use: %s", all)
	}
}

func TestFilesOfAnInstance(t *testing.T) {
	r, s := &Runtime{}, &sandbox{}
	share := []runtime.GPU{{UUID: "MIG-a", Minor: 2, Enforcement: "mig"}}
	if r.bindGPUs(t.Context(), s, share); s.err == nil {
		t.Error("an instance is shown without its files")
	}
	r.config.Files = func(_ context.Context, uuid string) ([]string, error) {
		if uuid != "MIG-a" {
			return nil, errors.New("not here")
		}
		return []string{"/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap12"}, nil
	}
	s = &sandbox{}
	r.bindGPUs(t.Context(), s, share)
	all := strings.Join(s.args, " ")
	for _, want := range []string{"/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap12", "/dev/nvidiactl"} {
		if s.err != nil || !strings.Contains(all, "--dev-bind-try "+want+" "+want) {
			t.Errorf("%s is not shown: %s, %v", want, all, s.err)
		}
	}
}

// A workspace with an MPS share sees that daemon's pipes and /dev/shm.
func TestMPSShareSeesItsDaemon(t *testing.T) {
	c := config(t.TempDir())
	c.MPSDir = t.TempDir()
	r := open(t, c)
	spec := scriptSpec(1, `cat $CUDA_MPS_PIPE_DIRECTORY/control; echo $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; touch /dev/shm/here; ls /run/nvidia-mps; echo end`)
	spec.GPUs = []runtime.GPU{{UUID: "GPU-a", Minor: 700, Cores: 30, MemoryMiB: 4096, Enforcement: "mps"}}
	if _, err := r.Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "MPS does not run for the GPU GPU-a") {
		t.Fatalf("launched without its daemon: %v", err)
	}
	base := filepath.Join(c.MPSDir, "GPU-a")
	for _, dir := range []string{"pipe", "shm"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(base, "pipe/control"), []byte("the pipe\n"), 0o644), os.Chmod(filepath.Join(base, "shm"), 0o777)); err != nil {
		t.Fatal(err)
	}
	if got := output(t, r, spec); got != "the pipe\n30 0=4096M\n0\nend\n" {
		t.Errorf("%s", got)
	}
	if _, err := os.Stat(filepath.Join(base, "shm/here")); err != nil {
		t.Error(err)
	}
}

func TestGPULimitsClaimNoMoreThanIsDone(t *testing.T) {
	for enforcement, want := range map[string]bool{"exclusive": true, "mig": true, "mps": false, "advisory": false} {
		limits := runtime.GPULimits([]runtime.GPU{{Enforcement: enforcement}}, runtime.GPU.Isolation)
		if len(limits) != 1 || limits[0].Enforced != want || limits[0].How.Empty() {
			t.Errorf("%s: %+v", enforcement, limits)
		}
	}
	if limits := runtime.GPULimits([]runtime.GPU{{Enforcement: "exclusive", Simulated: true}}, runtime.GPU.Isolation); limits[0].Enforced {
		t.Errorf("simulated: %+v", limits)
	}
}

// A notebook and its kernels open no port: the network is everybody's.
func TestNoPortIsOpened(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the sandbox's ports are told apart by its user")
	}
	r := open(t, config(t.TempDir()))
	spec := notebookSpec(1)
	s := reach(t, r, start(t, r, spec), runtime.PhaseRunning)
	if code, body := runtimetest.Call(t, s.Endpoint, spec.Token, "POST", "/api/kernels", "{}"); code != 201 {
		t.Fatalf("starting a kernel: %d %s", code, body)
	}
	// One port is ipykernel's own: a pipe for what child processes print, on
	// which it believes only who knows a random number of its making.
	answer := runtimetest.Execute(t, s.Endpoint, spec.Token, `
import os, sys
files = os.listdir(os.environ["JUPYTER_RUNTIME_DIR"])
print(any("-ipc-" in f for f in files), "%04X" % getattr(sys.stdout.pub_thread, "_pipe_port", 0))`)
	private, pipe, _ := strings.Cut(strings.TrimSpace(answer), " ")
	if private != "True" || len(pipe) != 4 {
		t.Errorf("the kernel answered %q", answer)
	}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(file)
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 7 && f[3] == "0A" && f[7] == fmt.Sprint(testUser) && f[1] != "0100007F:"+pipe {
				t.Errorf("a port is open: %s", line)
			}
		}
	}
}

func TestLongDirectory(t *testing.T) {
	r := open(t, config(filepath.Join(t.TempDir(), strings.Repeat("long", 20), strings.Repeat("path", 20))))
	spec := notebookSpec(1)
	s := reach(t, r, start(t, r, spec), runtime.PhaseRunning)
	if len(s.Endpoint.Address) > maxSocketPath {
		t.Errorf("the address %q cannot be dialled", s.Endpoint.Address)
	}
	if code, body := runtimetest.Call(t, s.Endpoint, spec.Token, "GET", "/api/status", ""); code != 200 {
		t.Errorf("status: %d %s", code, body)
	}
}

// The portal's directories may be closed to the user that notebooks run as.
func TestClosedDirectory(t *testing.T) {
	if !canStage() {
		t.Skip("needs root")
	}
	data := t.TempDir()
	if err := os.Chmod(data, 0o700); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(data, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, testUser, testUser); err != nil {
		t.Fatal(err)
	}
	r := open(t, config(filepath.Join(data, "run")))
	spec := scriptSpec(1, "echo here > ~/file; ls ~")
	spec.Mounts = []models.Mount{{Source: home, Target: innerHome}}
	if out := output(t, r, spec); out != "file\n" {
		t.Errorf("printed %q", out)
	}
	if !exists(filepath.Join(home, "file")) {
		t.Error("nothing was written")
	}
}

// Users can write in the directories above a mounted one: a symbolic link in its path
// must not lead to the host's files.
func TestMountsFollowNoLinks(t *testing.T) {
	shared := t.TempDir()
	if err := os.Symlink("/etc", filepath.Join(shared, "link")); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"link", "link/ssl"} {
		spec := scriptSpec(1, "true")
		spec.Mounts = []models.Mount{{Source: filepath.Join(shared, source), Target: "/notebook", ReadOnly: true}}
		if _, err := open(t, config(t.TempDir())).Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "symbolic links") {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// The sandbox owns the directory its socket is in; what it puts there must
// not lead the portal to another socket of the host.
func TestSocketOfTheHostIsNotDialled(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "host.sock")
	listener, err := net.Listen("unix", outside)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialled := make(chan struct{}, 1)
	go func() {
		if conn, err := listener.Accept(); err == nil {
			conn.Close()
			dialled <- struct{}{}
		}
	}()
	r := open(t, config(t.TempDir()))
	state := start(t, r, scriptSpec(1, "ln -s "+outside+" /run/weir/jupyter.sock; echo linked; exec sleep 600"))
	eventually(t, "the link is there", func() bool { return poll(t, r, state).LogTail != "" })
	for range 20 {
		if s := poll(t, r, state); s.Phase != runtime.PhaseStarting {
			t.Errorf("it is %s", s.Phase)
		}
	}
	select {
	case <-dialled:
		t.Error("the host's socket was dialled")
	default:
	}
}

func TestMountsKeepAwayFromTheSystem(t *testing.T) {
	withMount := func(target string) runtime.Spec {
		return runtime.Spec{Workspace: 1, Command: []string{"/bin/true"}, Mounts: []models.Mount{{Source: "/srv", Target: target}}}
	}
	for _, target := range []string{"", "/", "x", "/home/../etc", "/usr/lib", "/etc", "/run/weir", "/proc/1", "/home/"} {
		if withMount(target).Check() == nil {
			t.Errorf("%q was accepted", target)
		}
	}
	for _, target := range []string{"/home/jovyan", "/notebook/1/project_model", "/public_dataset"} {
		if err := withMount(target).Check(); err != nil {
			t.Errorf("%q: %v", target, err)
		}
	}
}

func TestInstallationOutsideOfTheSystem(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", "--system-site-packages", prefix).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	r := open(t, config(t.TempDir()))
	spec := scriptSpec(1, "")
	spec.Command = []string{filepath.Join(prefix, "bin", "python3"), "-c", "import sys; print(sys.prefix, flush=True); open(sys.prefix + '/x', 'w')"}
	state := start(t, r, spec)
	s := reach(t, r, state, runtime.PhaseExited)
	if !strings.HasPrefix(s.LogTail, prefix+"\n") || !strings.Contains(s.LogTail, "Read-only file system") {
		t.Errorf("printed %q", s.LogTail)
	}
	s2 := open(t, config(filepath.Join(prefix, "run")))
	if _, err := s2.Start(t.Context(), spec); err == nil {
		t.Error("an installation that contains the run directory was shown")
	}
}

// An installation in the home of the user who runs the server, and the link by which it is called,
// show nothing else of it; nor does the data directory there stand in the way.
func TestInstallationInAHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	write := func(path, content string) string {
		t.Helper()
		path = filepath.Join(home, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := "#!/bin/sh\nls -A " + home + " " + home + "/.local " + home + "/.local/bin " + home + "/.local/share 2>&1\n"
	program := write(".local/lib/jupyterlab/bin/jupyter-lab", script)
	write(".local/share/keyrings/login.keyring", "secret")
	own := write(".local/bin/own", script)
	called := filepath.Join(home, ".local/bin/jupyter-lab")
	if err := os.Symlink(program, called); err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(home, ".local/lib")
	for _, c := range []struct {
		program string
		paths   []string
		links   []link
	}{
		{called, []string{filepath.Join(lib, "jupyterlab")}, []link{{called, program}}},
		{program, []string{filepath.Join(lib, "jupyterlab")}, nil},
		{own, []string{filepath.Join(home, ".local/bin"), lib}, nil},
		{write("bin/own", script), []string{filepath.Join(home, "bin")}, nil},
		{write("own", script), []string{filepath.Join(home, "own")}, nil},
	} {
		if paths, links := installationOf(c.program); !slices.Equal(paths, c.paths) || !slices.Equal(links, c.links) {
			t.Errorf("%s: %q %q", c.program, paths, links)
		}
	}
	r := open(t, config(filepath.Join(home, ".local/share/run")))
	spec := scriptSpec(1, "")
	spec.Command = []string{called}
	out := reach(t, r, start(t, r, spec), runtime.PhaseExited).LogTail
	if !strings.Contains(out, ".local/bin:\njupyter-lab\n") || strings.Contains(out, "own") || strings.Contains(out, "run\n") ||
		strings.Contains(out, "keyrings") {
		t.Errorf("inside there is %q", out)
	}
}

func TestStagingLeavesOurOwnMountsAlone(t *testing.T) {
	if !canStage() {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	for range 20 {
		err := onSpareThread(func() error {
			if err := stageSources([]stagedSource{{path: dir}, {path: "/proc/self/status"}}); err != nil {
				return err
			}
			var here, there unix.Stat_t
			if err := unix.Stat(stagePath(0), &here); err != nil {
				return err
			}
			if err := unix.Stat(dir, &there); err == nil {
				t.Error("the stage does not cover its directory")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !exists(dir) || exists(stagePath(0)) {
		t.Error("the stage is seen outside")
	}
}
