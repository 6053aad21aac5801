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

// process is a process as /proc tells it.
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
	// The name, in parentheses, may hold anything; fields are counted after it.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return process{}, fmt.Errorf("process %d: unreadable stat", pid)
	}
	started, err := strconv.ParseUint(fields[19], 10, 64)
	return process{pid: pid, dead: strings.Contains("ZX", fields[0]), started: started}, err
}

// bootID names this boot: process numbers of another one mean nothing.
var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

// outerAlive reports whether the process that was started still runs: the
// waiting wrapper, and later bubblewrap outside the sandbox.
func (in *instance) outerAlive() bool {
	if in.Boot != bootID() {
		return false
	}
	p, err := readProcess(in.PID)
	return err == nil && !p.dead && p.started == in.Started
}

// innerAlive reports whether pid 1 of the sandbox still runs. It is known by
// its namespace, which, unlike a command line, nothing inside can change.
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

// exited reports whether nothing of the instance is left.
func (in *instance) exited() bool {
	if in.PID != 0 && in.outerAlive() {
		return false
	}
	rep := in.sandboxStatus()
	if rep.Child == 0 || in.Boot == "" {
		// Bubblewrap may have been killed before it wrote down its child, or
		// a server before it had written the record.
		return len(marked(in.dir)) == 0
	}
	return !in.innerAlive(rep)
}

// kill ends the sandbox by force: with its pid 1 ends everything inside.
func (in *instance) kill() {
	rep := in.sandboxStatus()
	signalIf(rep.Child, unix.SIGKILL, func() bool { return in.innerAlive(rep) })
	signalIf(in.PID, unix.SIGKILL, in.outerAlive)
	for _, pid := range marked(in.dir) {
		signalIf(pid, unix.SIGKILL, func() bool { return markerOf(pid) == in.dir })
	}
}

// killInner ends what a notebook that has exited left behind in its sandbox.
func (in *instance) killInner(rep bwrapStatus) {
	signalIf(rep.Child, unix.SIGKILL, func() bool { return in.innerAlive(rep) })
}

// terminate asks the notebook to end. Bubblewrap's pid 1 forwards no signals,
// so its children get them. It reports whether there was anyone to ask.
func (in *instance) terminate() bool {
	rep := in.sandboxStatus()
	if rep.ExitCode != nil || !in.innerAlive(rep) {
		return false
	}
	children := childrenOf(rep.Child)
	for _, pid := range children {
		signalIf(pid, unix.SIGTERM, func() bool { return slices.Contains(childrenOf(rep.Child), pid) })
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

// signalIf signals a process that is still the one meant. The handle is taken
// before the check, so that a number given to another in between is harmless.
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

// awaitExit waits until a process, child of ours or not, has ended.
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
	// The runtime's poller waits; no thread is held.
	return conn.Read(func(fd uintptr) bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0
	})
}

// markerName is the variable by which a sandbox's processes are found again;
// its value, the instance's directory, stands in bubblewrap's command line.
const markerName = "WEIR_INSTANCE"

// markerOf returns the directory of the instance that a process belongs to as
// wrapper, outer bubblewrap or pid 1 of the sandbox. Processes deeper inside
// are not asked: what stands in their command line is the user's.
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

// inOwnNamespace reports whether a process is in our own pid namespace, or the first
// of one directly below.
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

// markedAll finds the processes of all instances below a run directory.
func markedAll(runDir string) map[string][]int {
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

// marked finds the processes of one instance.
func marked(dir string) []int { return markedAll(filepath.Dir(dir))[dir] }
