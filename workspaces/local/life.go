package local

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

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
