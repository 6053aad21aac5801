package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// process is the state of a process in /proc.
type process struct {
	pid     int
	dead    bool // a zombie, or gone
	started uint64
}

func readProcess(pid int) (process, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	// The name, in parentheses, may contain spaces; fields are counted after it.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return process{}, fmt.Errorf("process %d: unreadable stat", pid)
	}
	started, err := strconv.ParseUint(fields[19], 10, 64)
	return process{pid: pid, dead: strings.Contains("ZX", fields[0]), started: started}, err
}

// bootID identifies this boot, because PIDs are only valid within one.
var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

// age is how long ago the instance was started. Like the start, it is counted from the boot
// of the machine, whatever its clock is set to.
func (in *instance) age() time.Duration {
	const tick = time.Second / 100 // of /proc
	var now unix.Timespec
	if in.PID == 0 || in.Boot != bootID() || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano()) - time.Duration(in.Started)*tick
}

// outerAlive reports whether the started process runs: the waiting wrapper, and
// later bubblewrap outside the sandbox.
func (in *instance) outerAlive() bool {
	if in.Boot != bootID() {
		return false
	}
	p, err := readProcess(in.PID)
	return err == nil && !p.dead && p.started == in.Started
}

// innerAlive reports whether pid 1 of the sandbox runs. It is identified by its
// namespace, which, unlike a command line, nothing inside can change.
func (in *instance) innerAlive(rep bwrapStatus) bool {
	if rep.Child == 0 || in.Boot != bootID() {
		return false
	}
	p, err := readProcess(rep.Child)
	if err != nil || p.dead {
		return false
	}
	var ns unix.Stat_t
	err = unix.Stat(fmt.Sprintf("/proc/%d/ns/pid", rep.Child), &ns)
	return err == nil && ns.Ino == rep.PIDNamespace
}

// exited reports whether no process of the instance runs.
func (in *instance) exited() bool {
	if in.PID != 0 && in.outerAlive() {
		return false
	}
	rep := in.sandboxStatus()
	if rep.Child == 0 || in.Boot == "" {
		// Bubblewrap may have been killed before it wrote its status, or a
		// server before it wrote the record.
		return len(markedProcesses(in.dir)) == 0
	}
	return !in.innerAlive(rep)
}

// kill kills the sandbox: when its pid 1 exits, everything inside is killed.
func (in *instance) kill() {
	in.killInner(in.sandboxStatus())
	signalIf(in.PID, unix.SIGKILL, in.outerAlive)
	for _, pid := range markedProcesses(in.dir) {
		signalIf(pid, unix.SIGKILL, func() bool { return markerOf(pid) == in.dir })
	}
}

// killInner kills what an exited notebook has left in its sandbox.
func (in *instance) killInner(rep bwrapStatus) {
	signalIf(rep.Child, unix.SIGKILL, func() bool { return in.innerAlive(rep) })
}

// terminate sends SIGTERM; see signal.
func (in *instance) terminate() bool { return in.signal(unix.SIGTERM) }

// signal sends a signal to the children of bubblewrap's pid 1, which forwards none. It
// reports whether there was any.
func (in *instance) signal(sig unix.Signal) bool {
	rep := in.sandboxStatus()
	if rep.ExitCode != nil || !in.innerAlive(rep) {
		return false
	}
	children := childrenOf(rep.Child)
	for _, pid := range children {
		signalIf(pid, sig, func() bool { return slices.Contains(childrenOf(rep.Child), pid) })
	}
	return len(children) > 0
}

func childrenOf(pid int) []int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var pids []int
	for _, f := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(f); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// signalIf signals a process if same confirms its identity. The pidfd is opened
// before the check, so that reuse of the PID in between is harmless.
func signalIf(pid int, sig unix.Signal, same func() bool) {
	if pid <= 1 {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if same() {
		unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// awaitExit waits until a process, also one that is not a child, has exited.
func awaitExit(ctx context.Context, pid int, same func() bool) error {
	if pid <= 1 {
		return nil
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	if !same() {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	// The runtime's poller waits, without a thread.
	return conn.Read(func(fd uintptr) bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0
	})
}

// markerName is the variable that identifies the processes of a sandbox: its value,
// the instance's directory, is in bubblewrap's command line.
const markerName = "WEIR_INSTANCE"

// markerOf returns the directory of the instance of which a process is the wrapper,
// the outer bubblewrap or pid 1 of the sandbox. Processes deeper inside do not
// count, because their command lines are the user's.
func markerOf(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	args := strings.Split(string(b), "\x00")
	i := slices.Index(args, markerName)
	if i < 1 || i+1 >= len(args) || args[i-1] != "--setenv" || !inOwnNamespace(pid) {
		return ""
	}
	return args[i+1]
}

// inOwnNamespace reports whether a process is in the PID namespace of this process,
// or the first of one directly below.
func inOwnNamespace(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), "\nNSpid:")
	line, _, _ := strings.Cut(rest, "\n")
	pids := strings.Fields(line)
	return len(pids) == 1 || len(pids) == 2 && pids[1] == "1"
}

// allMarkedProcesses finds the processes of all instances below a run directory.
func allMarkedProcesses(runDir string) map[string][]int {
	found := map[string][]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := markerOf(pid)
		if dir == "" || filepath.Dir(dir) != runDir {
			continue
		}
		if p, err := readProcess(pid); err == nil && !p.dead {
			found[dir] = append(found[dir], pid)
		}
	}
	return found
}

// markedProcesses finds the processes of one instance.
func markedProcesses(dir string) []int { return allMarkedProcesses(filepath.Dir(dir))[dir] }
