package local

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"weir/models"
	"weir/workspaces"
)

// probeTimeout bounds how long a Poll waits for a notebook that is starting.
const probeTimeout = 300 * time.Millisecond

// Poll returns the status of a workspace; see workspaces.Runtime.
func (r *Runtime) Poll(ctx context.Context, state workspaces.State) (workspaces.Status, error) {
	in, err := r.parseState(state)
	if err != nil {
		return workspaces.Status{}, err
	}
	if in.exited() {
		return r.exitStatus(in), nil
	}
	r.mu.Lock()
	r.watch(in, nil)
	r.mu.Unlock()
	if err := in.trimLog(); err != nil && !os.IsNotExist(err) {
		r.log.Warn("cannot shorten a notebook's log", "workspace", in.Workspace, "error", err)
	}
	status := workspaces.Status{LogTail: in.tail(), Limits: in.Limits}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if !r.ready(ctx, in) {
		status.Phase = workspaces.PhaseStarting
		status.Stage, status.Progress, status.Message = in.progress()
		return status, nil
	}
	status.Phase, status.Progress, status.Message = workspaces.PhaseRunning, 100, models.Say("Jupyter is running")
	status.Endpoint = r.endpoint(in)
	if in.Cgroup.outOfMemory() > 0 {
		status.Message = models.Say("Jupyter is running; a process was killed: memory limit of %s exceeded", models.FormatMiB(in.MemoryMiB))
	}
	return status, nil
}

func (in *instance) progress() (workspaces.Stage, int, models.Text) {
	if _, err := os.Lstat(filepath.Join(in.shared(), socketName)); err == nil {
		return workspaces.StageAnswering, 70, models.Say("Jupyter is almost ready")
	}
	if in.sandboxStatus().Child != 0 {
		return workspaces.StageStarting, 40, models.Say("Jupyter is starting")
	}
	return workspaces.StageLaunching, 10, models.Say("Creating the sandbox")
}

// exitStatus is the status of a workspace that has ended.
func (r *Runtime) exitStatus(in *instance) workspaces.Status {
	status := workspaces.Status{Phase: workspaces.PhaseExited, ExitCode: -1, LogTail: in.tail(), Limits: in.Limits}
	if code := in.sandboxStatus().ExitCode; code != nil {
		status.ExitCode = *code
	}
	status.Message = exitMessage(status.ExitCode, in.Cgroup.outOfMemory() > 0, in.MemoryMiB)
	return status
}

func exitMessage(code int, outOfMemory bool, mib int64) models.Text {
	const signalled = 128 // a shell's convention, and bubblewrap's
	killed := signalled + int(syscall.SIGKILL)
	switch {
	case outOfMemory && code == killed:
		return models.Say("Jupyter was killed: memory limit of %s exceeded", models.FormatMiB(mib))
	case code < 0:
		return models.Say("Jupyter is no longer running")
	}
	message := models.Say("Jupyter exited with code %d", code)
	if code > signalled && code <= signalled+64 {
		message = models.Say("Jupyter was killed by signal %d", code-signalled)
	}
	if outOfMemory {
		message = models.Say("%s; a process was killed: memory limit of %s exceeded", message, models.FormatMiB(mib))
	}
	return message
}

// Stop asks a workspace to end; see workspaces.Runtime.
func (r *Runtime) Stop(_ context.Context, state workspaces.State) error {
	in, err := r.parseState(state)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.exited() {
		delete(r.stopping, in.key())
		return r.remove(in)
	}
	r.watch(in, nil)
	first, asked := r.stopping[in.key()]
	switch now := r.now(); {
	case !asked:
		r.stopping[in.key()] = now
		if !in.terminate() {
			in.kill()
		}
	case now.Sub(first) >= stopGrace:
		in.kill()
	}
	return nil
}

// List tells what runs, whether or not its directory still does.
func (r *Runtime) List(context.Context) ([]workspaces.Instance, error) {
	r.mu.Lock() // a start is seen as a whole or not at all
	defer r.mu.Unlock()
	found := map[key]*instance{}
	for _, k := range r.directories() {
		if in, err := r.load(k); err == nil && !in.exited() {
			found[k] = in
		}
	}
	for dir, pids := range markedAll(r.dir) {
		k, ok := parseDirectory(filepath.Base(dir))
		if !ok || found[k] != nil {
			continue
		}
		in, err := orphan(dir, k, pids)
		if err == nil {
			found[k] = in
		}
	}
	var all []workspaces.Instance
	for k, in := range found {
		all = append(all, workspaces.Instance{Workspace: k.workspace, Generation: k.generation, State: in.state()})
	}
	slices.SortFunc(all, func(a, b workspaces.Instance) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Generation, b.Generation))
	})
	return all, nil
}

// orphan describes processes whose record is lost, so that they can be stopped.
func orphan(dir string, k key, pids []int) (*instance, error) {
	p, err := readProcess(slices.Min(pids))
	if err != nil {
		return nil, err
	}
	in := &instance{dir: dir}
	in.record = record{Workspace: k.workspace, Generation: k.generation, PID: p.pid, Started: p.started, Boot: bootID()}
	return in, nil
}
