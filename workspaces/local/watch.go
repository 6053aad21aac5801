package local

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watch makes sure that one goroutine follows the instance until it is gone:
// it reaps the child, ends what a dead notebook left in its sandbox, and
// signals Changed. child is nil for what an earlier server started. The
// caller holds the lock.
func (r *Runtime) watch(in *instance, child *exec.Cmd) {
	if r.watched[in.key()] || r.ctx.Err() != nil {
		return
	}
	r.watched[in.key()] = true
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		ctx, cancel := context.WithCancel(r.ctx)
		r.wg.Add(1)
		go func() {
			defer r.wg.Done()
			r.announceReady(ctx, in)
		}()
		r.follow(in, child)
		cancel()
		r.finish(in)
	}()
}

// follow returns when the instance is gone, or this Runtime is closed.
func (r *Runtime) follow(in *instance, child *exec.Cmd) {
	if err := awaitExit(r.ctx, in.PID, in.outerAlive); err != nil {
		return
	}
	code := -1
	if child != nil {
		code = reap(child)
	}
	// Bubblewrap's pid 1 waits for everything inside to end, which may be
	// never. If the notebook has, it takes the rest along; if bubblewrap
	// alone was killed, the notebook is well and goes on.
	rep := in.sandboxStatus()
	if rep.ExitCode != nil {
		in.killInner(rep)
	}
	if rep.Child == 0 {
		in.kill() // a child that nothing wrote down
	}
	if err := awaitExit(r.ctx, rep.Child, func() bool { return in.innerAlive(rep) }); err != nil {
		return
	}
	if os.Getpid() == 1 {
		// In a container without an init, orphans become our children.
		unix.Wait4(in.PID, nil, unix.WNOHANG, nil)
		unix.Wait4(rep.Child, nil, unix.WNOHANG, nil)
	}
	if rep.ExitCode == nil && code >= 0 {
		in.writeExitCode(code) // fails when a Stop has removed the directory
	}
}

// reap collects a child that has ended and returns its code as a shell would.
func reap(child *exec.Cmd) int {
	if child.Wait(); child.ProcessState == nil {
		return -1
	}
	status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return child.ProcessState.ExitCode()
}

// finish forgets an instance that is gone and, if it was stopped, removes
// what it left, for the caller need not call Stop again.
func (r *Runtime) finish(in *instance) {
	// The system takes its time to empty a cgroup, never long.
	for attempt := 0; !r.finished(in) && attempt < 100; attempt++ {
		if !sleep(r.ctx, 20*time.Millisecond) {
			return
		}
	}
	r.Changed(in.Workspace)
}

func (r *Runtime) finished(in *instance) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watched, in.key())
	if _, stopped := r.stopping[in.key()]; !stopped || r.ctx.Err() != nil {
		return true
	}
	if !in.exited() || r.remove(in) != nil {
		return false
	}
	delete(r.stopping, in.key())
	return true
}

// announceReady signals Changed as soon as the notebook answers.
func (r *Runtime) announceReady(ctx context.Context, in *instance) {
	began := time.Now()
	for !isSocket(in.socket()) {
		if r.ready(ctx, in) {
			r.Changed(in.Workspace)
			return
		}
		interval := 10 * time.Millisecond
		if time.Since(began) > time.Minute {
			interval = time.Second // it may never be
		}
		if !sleep(ctx, interval) {
			return
		}
	}
}

// sleep waits and reports whether it was not interrupted.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
