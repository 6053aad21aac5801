package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/workspaces/runtime"
)

// The number of an ended process was given to a process of another user, into which a server
// without root cannot look, or which it does not even see. It is not what ran.
func TestProcessOfAnotherUserIsGone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start this test as another user")
	}
	for name, options := range map[string]string{"in sight": "", "hidden": "hidepid=1"} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", "-test.run", "^TestLookAtAnother$", "-test.v")
			cmd.Dir, cmd.Env = "/", append(os.Environ(), fmt.Sprintf("WEIR_ANOTHER=%d", os.Getpid()), "TMPDIR=/tmp")
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testUser, Gid: testUser}}
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			err := onSpareThread(func() error {
				if err := privateMounts(); err != nil {
					return err
				}
				if err := unix.Mount("proc", "/proc", "proc", 0, options); err != nil {
					return err
				}
				return cmd.Start()
			})
			if err == nil {
				err = cmd.Wait()
			}
			if err != nil || !strings.Contains(out.String(), "--- PASS") {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}

// TestLookAtAnother runs as a user that may not look into the process WEIR_ANOTHER.
func TestLookAtAnother(t *testing.T) {
	var pid int
	if _, err := fmt.Sscan(os.Getenv("WEIR_ANOTHER"), &pid); err != nil {
		t.Skip("TestProcessOfAnotherUserIsGone runs this")
	}
	in := &instance{dir: t.TempDir()}
	in.UID, in.Boot, in.PID, in.Started = uint32(os.Getuid()), bootID(), pid, 1
	rep := bwrapStatus{Child: pid, PIDNamespace: 1}
	if outer, inner := in.outer(), in.inner(rep); outer != gone || inner != gone {
		t.Errorf("another user's process is taken for what ran: %d, %d", outer, inner)
	}
	in.UID = 0 // of an earlier version
	if in.inner(rep) != gone {
		t.Error("and so by the record of an earlier version")
	}
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	p, err := readProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if in.PID, in.Started = p.pid, p.started; in.outer() != alive {
		t.Error("a process of its own is not found")
	}
}

// fakeHelper puts a program in the place of slirp4netns. It writes its process id to the
// returned file.
func fakeHelper(t *testing.T, script string) (program, pid string) {
	t.Helper()
	dir := openTempDir(t)
	program, pid = filepath.Join(dir, "slirp4netns"), filepath.Join(dir, "pid")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho $$ >"+pid+".new && mv "+pid+".new "+pid+"\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(program, 0o755)); err != nil {
		t.Fatal(err)
	}
	return program, pid
}

// A helper that never gets ready delays its own workspace only, and is killed in the end.
func TestHangingNetworkHelper(t *testing.T) {
	r := open(t, config(t.TempDir()))
	separateNetwork(t, r)
	working := r.network
	var pidFile string
	r.network.helper, pidFile = fakeHelper(t, "sleep 600")
	r.network.wait = 5 * time.Second
	spec := scriptSpec(1, "exec sleep 600")
	ended := make(chan error, 1)
	go func() {
		_, err := r.Start(context.Background(), spec)
		ended <- err
	}()
	var pid int
	eventually(t, "the helper runs", func() bool {
		b, err := os.ReadFile(pidFile)
		fmt.Sscan(string(b), &pid)
		return err == nil
	})
	if all, err := r.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("meanwhile, %d workspaces are listed: %v", len(all), err)
	}
	select {
	case err := <-ended:
		t.Fatalf("the list has waited for the helper: %v", err)
	default:
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "slirp4netns is not ready within 5s") {
		t.Errorf("the start says %v", err)
	}
	eventually(t, "the helper is killed", func() bool { _, err := readProcess(pid); return saysGone(err) })
	if all, err := r.List(t.Context()); err != nil || len(all) != 0 || exists(r.path(key{1, 1})) {
		t.Errorf("%d workspaces are left: %v", len(all), err)
	}
	r.network = working
	if out := output(t, r, scriptSpec(1, "echo started")); out != "started\n" {
		t.Errorf("with a working helper: %q", out)
	}
}

// A helper that fails once, as on a busy machine, costs neither the workspace nor, when it is
// tried, the separation of all. What it says of its failure is kept.
func TestHelperThatFailsOnce(t *testing.T) {
	working := open(t, config(t.TempDir()))
	separateNetwork(t, working)
	program, pid := fakeHelper(t, `if [ ! -e "$0.failed" ]; then
	>"$0.failed"
	echo 'cannot bind mount /run to /tmp/run' >&2
	echo '* MTU: 65520'
	exit 1
fi
exec `+working.network.helper+` "$@"`)
	t.Setenv("PATH", filepath.Dir(program)+":"+os.Getenv("PATH"))
	var log bytes.Buffer
	c := config(t.TempDir())
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r := open(t, c)
	for i, when := range []string{"at the trial", "at a start"} {
		if i > 0 {
			s := reach(t, r, start(t, r, scriptSpec(1, "echo started")), runtime.PhaseExited)
			if l := limitOf(t, s, "network"); s.LogTail != "started\n" || !l.Enforced {
				t.Errorf("it says %+v and printed %q", l, s.LogTail)
			}
		}
		if err := errors.Join(os.Remove(program+".failed"), os.Remove(pid)); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
	}
	if n := strings.Count(log.String(), "cannot bind mount /run to /tmp/run"); n != 2 || strings.Contains(log.String(), "MTU") {
		t.Errorf("the reason is logged %d times:\n%s", n, log.String())
	}
}

// An installed helper that does not work here is found out once, and workspaces start without.
func TestUnsuitableNetworkHelper(t *testing.T) {
	separateNetwork(t, open(t, config(t.TempDir())))
	program, _ := fakeHelper(t, "echo 'unrecognized option --enable-sandbox' >&2; exit 1")
	t.Setenv("PATH", filepath.Dir(program)+":"+os.Getenv("PATH"))
	r := open(t, config(t.TempDir()))
	s := reach(t, r, start(t, r, scriptSpec(1, "echo started")), runtime.PhaseExited)
	if l := limitOf(t, s, "network"); s.LogTail != "started\n" || l.Enforced || !strings.Contains(l.How.String(), "unrecognized option") {
		t.Errorf("it says %+v and printed %q", l, s.LogTail)
	}
	if exists(filepath.Join(r.config.Dir, "trial")) {
		t.Error("the trial is left")
	}
}

// What still ends in the cgroup of a workspace delays its removal, and nothing else.
func TestBusyCgroupBlocksNoOther(t *testing.T) {
	r := open(t, config(t.TempDir()))
	spec := scriptSpec(1, "exit 0")
	spec.Memory = 64
	state := start(t, r, spec)
	reach(t, r, state, runtime.PhaseExited)
	in, err := r.parseState(state)
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Cgroup) == 0 {
		t.Skip("there are no cgroups here")
	}
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	in.Cgroup.join(cmd.Process.Pid)
	stopped := make(chan error, 1)
	eventually(t, "the list does not wait for the removal", func() bool {
		go func() { stopped <- r.Stop(context.Background(), state) }()
		for range 20 {
			if _, err := r.List(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-stopped:
			return false // or this machine was too slow
		default:
		}
		if err := <-stopped; !errors.Is(err, unix.EBUSY) {
			t.Fatalf("the stop says %v", err)
		}
		return true
	})
}

// A socket that cannot be made, as on a full disk, is missing in its workspace only.
func TestBrokenAPISocketStopsNoServer(t *testing.T) {
	c := config(t.TempDir())
	r := open(t, c)
	broken, whole := start(t, r, scriptSpec(1, "exec sleep 600")), start(t, r, scriptSpec(2, "exec sleep 600"))
	in, err := r.parseState(broken)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(in.apiDir(), apiSocket, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	later := open(t, c)
	if err := later.ServeAPI(func(int64) http.Handler { return http.NotFoundHandler() }); err != nil {
		t.Errorf("the server does not start: %v", err)
	}
	if in, err = r.parseState(whole); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", filepath.Join(in.apiDir(), apiSocket))
	if err != nil {
		t.Fatalf("the other workspace has no socket: %v", err)
	}
	conn.Close()
}

// A data directory that was moved, or is given by another path, is no copy.
func TestMovedDirectoryKeepsItsWorkspaces(t *testing.T) {
	for name, move := range map[string]func(from, to string) error{"moved": os.Rename, "by another path": func(from, to string) error {
		if err := os.Mkdir(to, 0o711); err != nil {
			return err
		}
		return unix.Mount(from, to, "", unix.MS_BIND, "")
	}} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 && name != "moved" {
				t.Skip("only root can mount")
			}
			base := openTempDir(t)
			if err := os.Chmod(base, 0o755); err != nil {
				t.Fatal(err)
			}
			from, to := filepath.Join(base, "from"), filepath.Join(base, "to")
			r := open(t, config(from))
			state, err := r.Start(t.Context(), scriptSpec(1, "exec sleep 600"))
			if err != nil {
				t.Fatal(err)
			}
			in, err := r.parseState(state)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(in.kill)
			eventually(t, "the sandbox stands", func() bool { return in.sandboxStatus().Child != 0 })
			r.Close()
			if err := move(from, to); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(to, unix.MNT_DETACH) })
			later := open(t, config(to))
			if all, err := later.List(t.Context()); err != nil || len(all) != 1 {
				t.Errorf("%d workspaces are listed: %v", len(all), err)
			}
			if s := poll(t, later, state); s.Phase == runtime.PhaseExited {
				t.Error("its workspace is taken for ended")
			}
			eventually(t, "it is stopped", func() bool { return later.Stop(t.Context(), state) == nil && !exists(later.path(key{1, 1})) })
			if in.outerAlive() {
				t.Error("the process runs on")
			}
		})
	}
}

// The kernel reads 32 bits of the process that ptrace stops. Calls that the profile denies
// fail with EPERM, and newer ones with ENOSYS, by which the C library knows to do without.
func TestSystemCallsByTheirBits(t *testing.T) {
	r := open(t, config(t.TempDir()))
	out := output(t, r, scriptSpec(1, `exec python3 -c '
import ctypes, errno, platform
libc = ctypes.CDLL(None, use_errno=True)
ptrace, bpf = {"x86_64": (101, 321), "aarch64": (117, 280)}[platform.machine()]
def call(number, *args):
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(number), *map(ctypes.c_ulong, args))
    return errno.errorcode.get(ctypes.get_errno(), "none")
for pid in 1, 1 << 32 | 1, 1 << 63 | 1: print("seize", call(ptrace, 0x4206, pid, 0, 0))
for pid in 4000000, 1 << 32 | 4000000: print("other", call(ptrace, 0x4206, pid, 0, 0))
print("denied", call(bpf, 0, 0, 0))
for number in 500, 600, 1000: print("newer", call(number, 0, 0, 0))
'`))
	want := strings.Repeat("seize EPERM\n", 3) + strings.Repeat("other ESRCH\n", 2) + "denied EPERM\n" + strings.Repeat("newer ENOSYS\n", 3)
	if out != want {
		t.Errorf("the answers are\n%s", out)
	}
}
