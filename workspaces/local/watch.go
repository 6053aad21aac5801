package local

import (
	"context"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
)

// watch starts a goroutine, if there is none, that follows the instance until it is
// gone: it reaps the child, kills what an exited notebook has left in its sandbox,
// and calls Changed. child is nil for a process of an earlier server. The caller
// must have locked mu.
func (r *Runtime) watch(in *instance, child *exec.Cmd) {
	if r.watched[in.incarnation()] || r.ctx.Err() != nil {
		return
	}
	r.watched[in.incarnation()] = true
	r.wg.Go(func() {
		ctx, cancel := context.WithCancel(r.ctx)
		if !r.commands {
			r.wg.Go(func() { r.announceReady(ctx, in) })
		}
		if in.Network {
			r.wg.Go(func() { r.keepConnected(ctx, in) })
		}
		for r.follow(in, child) != nil && models.Sleep(r.ctx, time.Second) { // out of descriptors, for example
		}
		cancel()
		r.finish(in)
	})
}

// follow returns when the instance is gone, and with an error when that cannot be told,
// or this Runtime is closed.
func (r *Runtime) follow(in *instance, child *exec.Cmd) error {
	if err := awaitExit(r.ctx, in.PID, in.outer); err != nil {
		return err
	}
	code := -1
	if child != nil {
		code = reap(child)
	}
	// Bubblewrap's pid 1 waits for everything inside, possibly forever. It is
	// killed if the notebook has exited. If only the outer bubblewrap was
	// killed, the notebook continues to run.
	rep := in.sandboxStatus()
	if rep.unknown {
		return errUnknown
	}
	if rep.ExitCode != nil {
		in.killInner(rep)
	}
	if rep.Child == 0 {
		in.kill() // a child that was not recorded
	}
	if err := awaitExit(r.ctx, rep.Child, func() liveness { return in.inner(rep) }); err != nil {
		return err
	}
	if os.Getpid() == 1 {
		// In a container without an init process, orphans become children of this one.
		unix.Wait4(in.PID, nil, unix.WNOHANG, nil)
		unix.Wait4(rep.Child, nil, unix.WNOHANG, nil)
	}
	if rep.ExitCode == nil && code >= 0 {
		in.writeExitCode(code) // fails when a Stop has removed the directory
	}
	return nil
}

// finish removes an instance that is gone from those watched, and its files if it
// was stopped, because the caller need not call Stop again.
func (r *Runtime) finish(in *instance) {
	// The kernel empties a cgroup with a short delay.
	for attempt := 0; !r.finished(in) && attempt < 100; attempt++ {
		if !models.Sleep(r.ctx, 20*time.Millisecond) {
			return
		}
	}
	r.Changed(in.Workspace)
}

func (r *Runtime) finished(in *instance) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watched, in.incarnation())
	if _, stopped := r.stopping[in.key()]; !stopped || r.commands || r.ctx.Err() != nil {
		return true
	}
	if !in.exited() || r.remove(in) != nil {
		return false
	}
	delete(r.stopping, in.key())
	return true
}

// announceReady calls Changed as soon as the notebook responds.
func (r *Runtime) announceReady(ctx context.Context, in *instance) {
	began := time.Now()
	for !isSocket(in.socket()) {
		if ready, err := r.ready(ctx, in); err == nil && ready {
			r.Changed(in.Workspace)
			return
		}
		interval := 10 * time.Millisecond
		if time.Since(began) > time.Minute {
			interval = time.Second // it may never respond
		}
		if !models.Sleep(ctx, interval) {
			return
		}
	}
}
