package runner

import (
	"errors"
	"fmt"
	"io"
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

// Operation is an operator that starts.
type Operation struct {
	Branch, Operator string
	Command          []string
	Attempt          string
	CPUs             []int
	Seconds          float64 // that are known of it, on one CPU; 0: none
	Out, Errors      io.Writer
}

// Process is an operator that has started.
type Process interface {
	Wait() End             // when it has ended
	Signal(syscall.Signal) // to all that it runs
}

// End is how an operator has ended.
type End struct {
	Code    int           // 128 + the signal that ended it
	Seconds float64       // it takes so many on one CPU; of a process the longer of duration and CPU time
	Used    time.Duration // CPU time of it and its children, on this machine
	Lost    bool          // it may go on, so that it is not tried again
	Problem string        // why it could not start or be followed; empty otherwise
}

// process is an operator as a process of this machine.
type process struct {
	cmd     *exec.Cmd
	started time.Time
}

// launch starts an operator in a process group of its own, without input. It sets the affinity of
// the calling thread, which the new process inherits before its first instruction; the thread
// must be locked.
func launch(o Operation) (Process, error) {
	cpus := o.CPUs
	p := &process{cmd: exec.Command(o.Command[0], o.Command[1:]...)}
	p.cmd.Stdout, p.cmd.Stderr = o.Out, o.Errors
	p.cmd.WaitDelay = outputPatience
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.Env = append(os.Environ(), attemptVariable+"="+o.Attempt)
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

// Wait waits until a process has ended.
func (p *process) Wait() End {
	err := p.cmd.Wait()
	duration := time.Since(p.started)
	state := p.cmd.ProcessState
	used := state.UserTime() + state.SystemTime()
	e := End{Code: state.ExitCode(), Used: used, Seconds: max(duration, used).Seconds()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Code = 128 + int(status.Signal())
	}
	if err != nil && e.Code == 0 && !errors.Is(err, exec.ErrWaitDelay) {
		e.Code, e.Problem = 1, err.Error()
	}
	return e
}

// Signal sends a signal to all processes of the operator.
func (p *process) Signal(s syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, s) // it may have ended
}
