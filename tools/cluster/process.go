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

// record identifies a process permanently: ids are reused, but not with the
// same start time.
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

// recordOf reads the record of a process; false when it has ended or is a
// zombie.
func recordOf(pid int) (record, bool) {
	stat, err := readStat(fmt.Sprintf("/proc/%d", pid))
	return record{pid, stat.start}, err == nil && stat.state != "Z" && stat.state != "X"
}

// alive reports whether the process has not ended.
func (r record) alive() bool {
	now, ok := recordOf(r.pid)
	return ok && now.start == r.start
}

// signal signals exactly this process, unless it has ended.
func (r record) signal(s syscall.Signal) error {
	if !r.alive() {
		return nil
	}
	if err := syscall.Kill(r.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d: %w", r.pid, err)
	}
	return nil
}

// end kills a process: a stopped cluster keeps no data, so no graceful
// shutdown is needed.
func (r record) end() error {
	if err := r.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !r.gone(10 * time.Second) {
		return fmt.Errorf("process %d does not end", r.pid)
	}
	return nil
}

// gone waits for the end of a process that may not be a child.
func (r record) gone(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); r.alive(); pause() {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// stopped waits until every thread has stopped: kill(2) returns before the
// thread that takes the signal stops the others, which respond until then.
func (r record) stopped(limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; pause() {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", r.pid))
		if err != nil {
			return err
		}
		runs := 0
		for _, thread := range threads {
			if stat, err := readStat(thread); err == nil && stat.state != "T" {
				runs++
			}
		}
		switch {
		case !r.alive():
			return fmt.Errorf("process %d has ended", r.pid)
		case runs == 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%d threads of process %d do not stop", runs, r.pid)
		}
	}
}

// pause waits between two polls.
func pause() { <-time.After(20 * time.Millisecond) }

// stat is a part of the stat file of a process or a thread.
type stat struct {
	state, start string
	parent       int
}

func readStat(dir string) (stat, error) {
	text, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return stat{}, err
	}
	// The name, in parentheses, can contain any character.
	field := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	if len(field) < 20 {
		return stat{}, fmt.Errorf("%s/stat has %d fields", dir, len(field))
	}
	parent, err := strconv.Atoi(field[1])
	return stat{state: field[0], start: field[19], parent: parent}, err
}

// spawn starts a program of the cluster, detached from this process. Its
// output is in logs/NAME.log and its record in processes/NAME.
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
	// Most of their time, programs of a small cluster would collect garbage; there is memory.
	cmd.Env = []string{"PATH=" + systemPath, "HOME=" + c.dir, "GOGC=400", "GOMEMLIMIT=1GiB"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	p.record, _ = recordOf(p.pid)
	// Reaps the process, and ends with it.
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

// running is a program started by this process.
type running struct {
	name, program string
	args          []string
	log           string
	pid           int
	record        record // empty when it had ended at once
	done          chan struct{}
}

// failure returns why a program is not ready, with the end of its log.
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
