package runner

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
)

// outputPatience is how long the output of an operator's descendants is read after it has
// ended.
const outputPatience = 5 * time.Second

// process is a running operator.
type process struct {
	cmd       *exec.Cmd
	out, errs *lines
	started   time.Time
	cpus      []int
}

// result is how a process has ended.
type result struct {
	code    int           // 128 + the signal that ended it
	seconds float64       // the longer of duration and CPU time
	used    time.Duration // CPU time of it and its children
	problem string        // why it could not start; empty otherwise
}

// launch starts a command of an attempt on some CPUs, in a process group of its own, without input. It sets
// the affinity of the calling thread, which the new process inherits before its first
// instruction; the thread must be locked.
func launch(command []string, attempt string, cpus []int, stdout, stderr *lines) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...), out: stdout, errs: stderr, cpus: cpus}
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	p.cmd.WaitDelay = outputPatience
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.Env = append(os.Environ(), attemptVariable+"="+attempt)
	p.cmd.Env = append(p.cmd.Env, "GOMAXPROCS="+strconv.Itoa(len(cpus)))
	for name, value := range models.ThreadVariables(int64(len(cpus))) {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	var before, pinned unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	for _, id := range cpus {
		pinned.Set(id)
	}
	if err := unix.SchedSetaffinity(0, &pinned); err != nil {
		return nil, fmt.Errorf("sched_setaffinity: %w", err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }() // what was allowed before is allowed again
	p.started = time.Now()
	return p, p.cmd.Start()
}

// wait waits until a process has ended.
func (p *process) wait() result {
	err := p.cmd.Wait()
	duration := time.Since(p.started)
	p.out.flush()
	p.errs.flush()
	state := p.cmd.ProcessState
	used := state.UserTime() + state.SystemTime()
	r := result{code: state.ExitCode(), used: used, seconds: max(duration, used).Seconds()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.code = 128 + int(status.Signal())
	}
	if err != nil && r.code == 0 && !errors.Is(err, exec.ErrWaitDelay) {
		r.code, r.problem = 1, err.Error()
	}
	return r
}

// signal sends a signal to all processes of the operator.
func (p *process) signal(s syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, s) // it may have ended
}
