package local

import (
	"bytes"
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

// Variables that identify the processes of a sandbox: their values are in bubblewrap's
// command line.
const (
	markerName = "WEIR_INSTANCE"     // the instance's directory
	ownerName  = "WEIR_INSTALLATION" // see runtime.Owner
)

// mark says of which instance a process is, and for whom it was started.
type mark struct{ dir, owner string }

func (m mark) args() []string {
	return []string{"--setenv", markerName, m.dir, "--setenv", ownerName, m.owner}
}

// markOf returns the mark of a process that is the wrapper, the outer bubblewrap or pid 1 of
// a sandbox; the zero mark of others. Processes deeper inside do not count, because their
// command lines are the user's.
func markOf(pid int) (m mark, err error) {
	b, err := readCommandLine(pid)
	if err != nil || !bytes.Contains(b, []byte(markerName)) {
		return m, err
	}
	args := strings.Split(string(b), "\x00")
	i := slices.Index(args, markerName)
	if i < 1 || i+1 >= len(args) || args[i-1] != "--setenv" {
		return m, nil
	}
	own, err := inOwnNamespace(pid)
	if !own {
		return m, err
	}
	m.dir = args[i+1]
	if rest := args[i+2:]; len(rest) > 2 && rest[0] == "--setenv" && rest[1] == ownerName {
		m.owner = rest[2]
	}
	return m, nil
}

// readCommandLine reads the first arguments of a process, each with a zero byte behind it. It is
// called for every process of the machine: [os.ReadFile] would take three times the system
// calls. A process can make its command line as long as its memory, without using any.
func readCommandLine(pid int) (b []byte, err error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/cmdline", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for b = make([]byte, 0, 512); len(b) < maxCommandLine; b = slices.Grow(b, cap(b)) {
		for len(b) < cap(b) {
			n, err := unix.Read(fd, b[len(b):cap(b)])
			switch {
			case err == unix.EINTR:
			case err != nil || n == 0:
				return b, err
			default:
				b = b[:len(b)+n]
			}
		}
	}
	return b, nil
}

// maxCommandLine is what is read of a command line: a mark is near its beginning.
const maxCommandLine = 16 << 10

// inOwnNamespace reports whether a process is in the PID namespace of this process,
// or the first of one directly below.
func inOwnNamespace(pid int) (bool, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false, err
	}
	_, rest, _ := strings.Cut(string(b), "\nNSpid:")
	line, _, _ := strings.Cut(rest, "\n")
	pids := strings.Fields(line)
	return len(pids) == 1 || len(pids) == 2 && pids[1] == "1", nil
}

// allMarkedProcesses finds the processes of all instances. With an error, there may be
// others.
func allMarkedProcesses() (map[mark][]int, error) {
	found := map[mark][]int{}
	entries, unread := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		m, err := markOf(pid)
		if err == nil && m.dir == "" {
			continue
		}
		var p process
		if err == nil {
			p, err = readProcess(pid)
		}
		switch {
		case err == nil && !p.dead:
			found[m] = append(found[m], pid)
		case err != nil && !saysGone(err) && !errors.Is(err, fs.ErrPermission): // another user's is none of ours
			unread = err
		}
	}
	return found, unread
}

// searchPeriod is how long what a search found is used: workspaces, runs and deployments
// each look for what is left of theirs, among all processes of the machine.
const searchPeriod = 4 * time.Second

// lastSearch is what the last search found.
var lastSearch struct {
	mu    sync.Mutex
	at    time.Time // zero: a process was started since
	found map[mark][]int
}

// recentlyMarkedProcesses are the processes of all instances that run, and others that have
// ended in the last searchPeriod.
func recentlyMarkedProcesses() (map[mark][]int, error) {
	l := &lastSearch
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.at.IsZero() && time.Since(l.at) < searchPeriod {
		return l.found, nil
	}
	found, err := allMarkedProcesses()
	if err != nil {
		return nil, err
	}
	l.at, l.found = time.Now(), found
	return found, nil
}

// searchAgain must be called after a process was started.
func searchAgain() {
	lastSearch.mu.Lock()
	defer lastSearch.mu.Unlock()
	lastSearch.at = time.Time{}
}

// markedProcesses finds the processes of one instance.
func markedProcesses(m mark) ([]int, error) {
	all, err := allMarkedProcesses()
	return all[m], err
}
