package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

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
