package local

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"weir/models"
	"weir/workspaces/runtime"
)

// probeTimeout is how long Poll waits for the response of a starting notebook.
const probeTimeout = 300 * time.Millisecond

// Log returns the last lines of a workspace; see [runtime.Runtime].
func (r *Runtime) Log(_ context.Context, state runtime.State) (string, error) {
	in, err := r.parseState(state)
	if err != nil || in.foreign() {
		return "", err
	}
	return in.logEnd(runtime.MaxLog), nil
}

// Poll returns the status of a workspace; see [runtime.Runtime].
func (r *Runtime) Poll(ctx context.Context, state runtime.State) (runtime.Status, error) {
	in, err := r.parseState(state)
	if err != nil {
		return runtime.Status{}, err
	}
	if in.exited() {
		return r.exitStatus(in)
	}
	r.mu.Lock()
	r.watch(in, nil)
	r.mu.Unlock()
	if err := in.trimLog(); err != nil && !os.IsNotExist(err) {
		r.config.Logger.Warn("cannot shorten a notebook's log", "workspace", in.Workspace, "error", err)
	}
	r.checkShared(in)
	status := runtime.Status{LogTail: in.tail(), Limits: in.Limits}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	ready, err := r.ready(ctx, in)
	if err != nil {
		return runtime.Status{}, err
	}
	if !ready {
		status.Phase = runtime.PhaseStarting
		status.Stage, status.Progress, status.Message = in.progress()
		return status, nil
	}
	status.Phase, status.Progress, status.Message = runtime.PhaseRunning, 100, models.Say("Jupyter is running")
	status.Endpoint = models.Endpoint{Network: "unix", Address: r.address(in.socket())}
	if in.Cgroup.outOfMemory() > 0 {
		status.Message = models.Say("Jupyter is running; a process was killed: memory limit of %s exceeded", models.FormatMiB(in.MemoryMiB))
	}
	return status, nil
}

func (in *instance) progress() (runtime.Stage, int, models.Text) {
	if _, err := os.Lstat(filepath.Join(in.shared(), socketName)); err == nil {
		return runtime.StageAnswering, 70, models.Say("Jupyter is almost ready")
	}
	if in.sandboxStatus().Child != 0 {
		return runtime.StageStarting, 40, models.Say("Jupyter is starting")
	}
	return runtime.StageLaunching, 10, models.Say("Creating the sandbox")
}

// exitStatus returns the status of a workspace that has ended.
func (r *Runtime) exitStatus(in *instance) (runtime.Status, error) {
	status := runtime.Status{Phase: runtime.PhaseExited, ExitCode: -1, LogTail: in.tail(), Limits: in.Limits}
	rep := in.sandboxStatus()
	if rep.unknown {
		return runtime.Status{}, errUnknown
	}
	if rep.ExitCode != nil {
		status.ExitCode, status.EndedAt = *rep.ExitCode, r.endedAt(in)
	}
	status.Message = exitMessage(status.ExitCode, in.Cgroup.outOfMemory() > 0, in.MemoryMiB)
	if reason := r.reasonOf(in); !reason.Empty() {
		status.Message = reason
	}
	return status, nil
}

// endedAt is when a sandbox with a known exit code has ended.
func (r *Runtime) endedAt(in *instance) time.Time {
	info, err := os.Stat(in.statusFile()) // written last
	if err != nil {
		return time.Time{}
	}
	return r.config.Clock().Add(-time.Since(info.ModTime()))
}

func exitMessage(code int, outOfMemory bool, mib int64) models.Text {
	switch {
	case outOfMemory && code == 128+int(syscall.SIGKILL):
		return models.Say("Jupyter was killed: memory limit of %s exceeded", models.FormatMiB(mib))
	case code < 0:
		return models.Say("Jupyter is no longer running")
	}
	message := runtime.ExitMessage(code)
	if outOfMemory {
		message = models.Say("%s; a process was killed: memory limit of %s exceeded", message, models.FormatMiB(mib))
	}
	return message
}

// Stop terminates a workspace; see [runtime.Runtime].
func (r *Runtime) Stop(ctx context.Context, state runtime.State) error {
	in, err := r.parseState(state)
	if err != nil {
		return err
	}
	return untilEmpty(ctx, func() error { return r.stop(in) })
}

func (r *Runtime) stop(in *instance) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.exited() {
		delete(r.stopping, in.key())
		return r.remove(in)
	}
	r.watch(in, nil)
	first, stopping := r.stopping[in.key()]
	switch now := r.config.Clock(); {
	case !stopping:
		r.stopping[in.key()] = now
		if !in.terminate() {
			in.kill()
		}
	case now.Sub(first) >= stopGrace:
		in.kill()
	}
	return nil
}

// List returns all running workspaces, also those whose directory was removed.
func (r *Runtime) List(context.Context) ([]runtime.Instance, error) {
	all, _, err := r.list()
	return all, err
}

// list returns the instances that run, and those that have left a directory.
func (r *Runtime) list() (running, ended []runtime.Instance, err error) {
	r.mu.Lock() // not during a start
	defer r.mu.Unlock()
	found, left := map[key]*instance{}, map[key]*instance{}
	keys, err := r.directories()
	if err != nil {
		return nil, nil, err
	}
	for _, k := range keys {
		in, recorded, err := r.loadOrEmpty(k)
		if err != nil {
			return nil, nil, err
		}
		if recorded && !in.exited() {
			found[k] = in
			continue
		}
		if !recorded {
			in.Boot = bootID()
		}
		left[k] = in
	}
	marked, err := recentlyMarkedProcesses()
	if err != nil {
		return nil, nil, err
	}
	for m, pids := range marked {
		k, ok := parseDirectory(filepath.Base(m.dir))
		if !ok || found[k] != nil || filepath.Dir(m.dir) != r.config.Dir || !r.config.Owner.Owns(m.owner) {
			continue
		}
		if in, err := r.orphan(m, k, pids); err == nil {
			found[k] = in
			delete(left, k)
		}
	}
	for k, in := range found {
		running = append(running, runtime.Instance{Workspace: k.workspace, Generation: k.generation, State: in.state()})
	}
	for k, in := range left {
		ended = append(ended, runtime.Instance{Workspace: k.workspace, Generation: k.generation, State: in.state(), Ended: true})
	}
	return running, ended, nil
}

// orphan returns an instance for processes without a record, so that they can be
// stopped.
func (r *Runtime) orphan(m mark, k key, pids []int) (*instance, error) {
	pids = slices.DeleteFunc(slices.Sorted(slices.Values(pids)), func(pid int) bool {
		now, err := markOf(pid)
		return err != nil || now != m // it has ended since the search
	})
	if len(pids) == 0 {
		return nil, fs.ErrNotExist
	}
	p, err := readProcess(pids[0])
	if err != nil {
		return nil, err
	}
	in := r.instance(k)
	in.PID, in.Started, in.Boot, in.Owner = p.pid, p.started, bootID(), m.owner
	return in, nil
}
