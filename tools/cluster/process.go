package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// record names one process for good: ids are used again, but not with the
// same start.
type record struct {
	pid   int
	start string // in clock ticks since boot
}

func (r record) String() string { return fmt.Sprintf("%d %s", r.pid, r.start) }

func parseRecord(text string) (record, bool) {
	pid, start, ok := strings.Cut(text, " ")
	n, err := strconv.Atoi(pid)
	return record{n, start}, ok && err == nil && n > 0 && start != ""
}

// self is the record of this process.
func self() string {
	r, _ := recordOf(os.Getpid())
	return r.String()
}

// recordOf reads the record of a process; false when it has ended, be it
// collected or not.
func recordOf(pid int) (record, bool) {
	stat, err := readStat(pid)
	return record{pid, stat.start}, err == nil && stat.state != "Z" && stat.state != "X"
}

// alive tells whether the process has not ended.
func (r record) alive() bool {
	now, ok := recordOf(r.pid)
	return ok && now.start == r.start
}

// signal sends to exactly this process. What has ended needs none.
func (r record) signal(s syscall.Signal) error {
	if !r.alive() {
		return nil
	}
	if err := syscall.Kill(r.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d: %w", r.pid, err)
	}
	return nil
}

// end ends a process by force: nothing of a cluster that ends is kept, so
// nobody needs time to put things in order.
func (r record) end() error {
	if err := r.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !r.gone(10 * time.Second) {
		return fmt.Errorf("process %d does not end", r.pid)
	}
	return nil
}

// gone waits for the end of a process, which need not be a child.
func (r record) gone(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); r.alive(); pause() {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// pause is the time between two looks at something.
func pause() { <-time.After(20 * time.Millisecond) }

// stat is what /proc says of a process.
type stat struct {
	state, start string
	parent       int
}

func readStat(pid int) (stat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	// The name, in parentheses, may hold anything.
	field := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	if len(field) < 20 {
		return stat{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(field))
	}
	parent, err := strconv.Atoi(field[1])
	return stat{state: field[0], start: field[19], parent: parent}, err
}

// spawn starts a program of the cluster, detached: it outlives this process.
// Its output goes to logs/NAME.log and its record to processes/NAME.
func (c *Cluster) spawn(name, program string, args ...string) (*running, error) {
	for _, dir := range []string{"logs", "processes"} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil {
			return nil, err
		}
	}
	p := &running{name: name, program: program, args: args, log: c.path("logs", name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + systemPath, "HOME=" + c.dir}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	p.record, _ = recordOf(p.pid)
	// Collects the process when it ends, and ends with it.
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	if err := os.WriteFile(filepath.Join(c.path("processes"), name), []byte(p.record.String()), 0o644); err != nil {
		return nil, errors.Join(err, p.record.end())
	}
	c.started.Store(name, p)
	return p, nil
}

// running is a program that this process started.
type running struct {
	name, program string
	args          []string
	log           string
	pid           int
	record        record // empty when it had ended at once
	done          chan struct{}
}

// failure explains why a program is not ready, with the end of its log.
func (p *running) failure(err error) error {
	select {
	case <-p.done:
		err = errors.New("it has ended")
	default:
	}
	text, readErr := os.ReadFile(p.log)
	if readErr != nil {
		return fmt.Errorf("%s is not ready: %w", p.name, err)
	}
	return fmt.Errorf("%s is not ready: %w; the end of its log:\n%s", p.name, err, text[max(0, len(text)-2000):])
}
