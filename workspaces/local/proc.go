package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// liveness is what a look at a process has shown. Only an error that says so means that
// a process is gone: this process may be out of descriptors or memory.
type liveness int

const (
	unknown liveness = iota
	alive
	gone
)

var errUnknown = errors.New("what runs cannot be read")

// saysGone reports whether an error of a look means that there is no such process or file.
func saysGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// lookAt returns the liveness of a process of a user: alive if same confirms its identity.
func lookAt(pid int, uid uint32, same func(process) (bool, error)) liveness {
	p, err := readProcess(pid)
	if err == nil && p.dead {
		return gone
	}
	is := false
	if err == nil {
		is, err = same(p)
	}
	switch {
	case err == nil && is:
		return alive
	case err == nil || saysGone(err), errors.Is(err, fs.ErrPermission) && ofAnother(pid, uid):
		return gone
	}
	return unknown
}

// ofAnother reports whether a process that this one may not look into belongs to another user
// than uid, or is gone: the number was given to it after the process in question had ended.
func ofAnother(pid int, uid uint32) bool {
	var st unix.Stat_t // of the directory, which shows the effective user to everybody
	err := unix.Stat(fmt.Sprintf("/proc/%d", pid), &st)
	return err == nil && uid != 0 && st.Uid != uid || saysGone(err)
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

// outer returns the liveness of the started process: the waiting wrapper, and later
// bubblewrap outside the sandbox.
func (in *instance) outer() liveness {
	if in.Boot != bootID() || in.foreign() {
		return gone
	}
	return lookAt(in.PID, in.user(), func(p process) (bool, error) { return p.started == in.Started, nil })
}

// user is the one that the processes of an instance run as; 0 if it is not recorded.
func (in *instance) user() uint32 { return cmp.Or(in.UID, uint32(os.Geteuid())) }

func (in *instance) outerAlive() bool { return in.outer() == alive }

// inner returns the liveness of pid 1 of the sandbox. It is identified by its
// namespace, which, unlike a command line, nothing inside can change.
func (in *instance) inner(rep bwrapStatus) liveness {
	if rep.Child == 0 || in.Boot != bootID() || in.foreign() {
		return gone
	}
	return lookAt(rep.Child, in.user(), func(process) (bool, error) {
		var ns unix.Stat_t
		err := unix.Stat(fmt.Sprintf("/proc/%d/ns/pid", rep.Child), &ns)
		return ns.Ino == rep.PIDNamespace, err
	})
}

func (in *instance) innerAlive(rep bwrapStatus) bool { return in.inner(rep) == alive }

// exited reports whether it is known that no process of the instance runs.
func (in *instance) exited() bool {
	if in.foreign() { // whatever runs of it is not this server's
		return true
	}
	if in.PID != 0 && in.outer() != gone {
		return false
	}
	rep := in.sandboxStatus()
	if rep.unknown {
		return false
	}
	if rep.Child == 0 || in.Boot == "" {
		// Bubblewrap may have been killed before it wrote its status, or a
		// server before it wrote the record.
		pids, err := markedProcesses(in.mark())
		return err == nil && len(pids) == 0
	}
	return in.inner(rep) == gone
}

// kill kills the sandbox: when its pid 1 exits, everything inside is killed.
func (in *instance) kill() {
	if in.foreign() {
		return
	}
	rep := in.sandboxStatus()
	in.killInner(rep)
	signalIf(in.PID, unix.SIGKILL, in.outerAlive)
	if rep.Child != 0 && in.PID != 0 { // both are known
		return
	}
	pids, _ := markedProcesses(in.mark()) // those that could be read
	for _, pid := range pids {
		signalIf(pid, unix.SIGKILL, func() bool {
			m, err := markOf(pid)
			return err == nil && m == in.mark()
		})
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
func awaitExit(ctx context.Context, pid int, look func() liveness) error {
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
	switch look() {
	case gone:
		return nil
	case unknown:
		return errUnknown
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
