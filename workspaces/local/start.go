package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
)

// Start launches spec; see [runtime.Runtime].
func (r *Runtime) Start(ctx context.Context, spec runtime.Spec) (runtime.State, error) {
	command, err := checkSpec(spec)
	if err != nil {
		return nil, err
	}
	spec.Command = command
	return r.start(ctx, key{spec.Workspace, spec.Generation}, spec, command)
}

// start runs a command in the sandbox of a checked spec as the instance k, unless that
// runs already.
func (r *Runtime) start(ctx context.Context, k key, spec runtime.Spec, command []string) (runtime.State, error) {
	if err := r.sweep(ctx, k); err != nil {
		return nil, err
	}
	in, err := r.begin(ctx, k, spec, command)
	if err != nil {
		return nil, err
	}
	if in.connected == nil {
		return in.state(), nil
	}
	select {
	case err = <-in.connected:
	case <-ctx.Done():
		err = ctx.Err()
	case <-r.ctx.Done():
		err = r.ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(retryable(fmt.Errorf("connect the sandbox: %w", err)), r.abandon(in))
	}
	return in.state(), nil
}

// retryable makes the error of a start one after which it is repeated, if what was short may be there again.
func retryable(err error) error {
	if passing(err) {
		return models.Unavailable(err, "The notebook could not be launched.")
	}
	return err
}

// begin starts the instance k, unless that runs already, up to the point where its sandbox
// waits to be connected.
func (r *Runtime) begin(ctx context.Context, k key, spec runtime.Spec, command []string) (*instance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in, recorded, err := r.loadOrEmpty(k)
	if err != nil {
		return nil, models.Unavailable(err, "The notebook could not be launched.")
	}
	if recorded && !in.exited() {
		return in, nil
	}
	delete(r.stopping, k)
	in = r.instance(k)
	if err := r.launch(ctx, in, spec, command); err != nil {
		return nil, errors.Join(retryable(err), r.remove(in))
	}
	return in, nil
}

// sweep removes what earlier generations of a workspace, and failed attempts of this
// one, have left.
func (r *Runtime) sweep(ctx context.Context, k key) error {
	keys, err := r.directories()
	if err != nil {
		return err
	}
	for _, old := range keys {
		if old.workspace != k.workspace || old.generation > k.generation {
			continue
		}
		err := untilEmpty(ctx, func() error {
			r.mu.Lock()
			defer r.mu.Unlock()
			in, _, err := r.loadOrEmpty(old)
			if err != nil {
				return models.Unavailable(err, "The notebook could not be launched.")
			}
			if !in.exited() {
				return nil
			}
			return r.remove(in)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// untilEmpty repeats a removal while processes of the cgroup still end, as the helper of the
// network does just after its sandbox. The caller must not have locked mu.
func untilEmpty(ctx context.Context, remove func() error) error {
	err := remove()
	for attempt := 0; errors.Is(err, unix.EBUSY) && attempt < 500 && models.Sleep(ctx, 2*time.Millisecond); attempt++ {
		err = remove()
	}
	return err
}

// endTime is how long an instance that was killed may take to end.
const endTime = 10 * time.Second

// abandon ends an instance that could not be connected, and removes it.
func (r *Runtime) abandon(in *instance) error {
	defer in.release()
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	for in.kill(); !in.exited(); in.kill() {
		if !models.Sleep(ctx, 10*time.Millisecond) {
			return errors.New("the sandbox has not ended yet")
		}
	}
	return untilEmpty(ctx, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.remove(in)
	})
}

// launch creates the files of the workspace, starts its process behind a gate, and
// opens the gate when the process is recorded.
func (r *Runtime) launch(ctx context.Context, in *instance, spec runtime.Spec, command []string) error {
	if err := r.network.check(spec.Outgoing); err != nil {
		return err
	}
	if err := r.makeFiles(in, spec); err != nil {
		return err
	}
	if err := r.openAPI(in); err != nil {
		return err
	}
	box, err := r.sandboxFor(ctx, in, spec)
	if err != nil {
		return err
	}
	defer box.close()
	gated, err := r.startGated(in, box, command)
	if err != nil {
		in.release()
		return err
	}
	if err := r.confirm(ctx, in, gated, spec); err != nil {
		gated.kill()
		in.release()
		return err
	}
	if in.Network {
		in.connected = make(chan error, 1)
	}
	r.watch(in, gated.cmd)
	return nil
}

// confirm limits and records a gated process before it opens the gate: no workspace
// runs without a record.
func (r *Runtime) confirm(ctx context.Context, in *instance, gated *gatedProcess, spec runtime.Spec) error {
	p, err := readProcess(gated.cmd.Process.Pid)
	if err != nil {
		return err
	}
	in.PID, in.Started, in.Boot, in.Dir = p.pid, p.started, bootID(), in.dir
	if in.RunDir, err = identify(filepath.Dir(in.dir)); err != nil {
		return err
	}
	in.MemoryMiB = spec.Memory
	in.Cgroup, in.Limits = confine(cgroupName(in.dir, in.owner), p.pid, spec)
	if in.UID == r.user.uid {
		in.Limits = append(in.Limits, models.Limit{Resource: "user",
			How: models.Say("shared with other workspaces, and so are the limits of the kernel by user, such as inotify instances and keys")})
	}
	in.Limits = append(in.Limits, r.network.limit(in.Outgoing))
	in.Limits = append(in.Limits, runtime.GPULimits(spec.GPUs, runtime.GPU.Isolation)...)
	if err := in.save(); err != nil {
		return err
	}
	if r.beforeOpen != nil {
		r.beforeOpen()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return gated.open()
}

func (r *Runtime) makeFiles(in *instance, spec runtime.Spec) error {
	if err := os.Mkdir(in.dir, 0o711); err != nil {
		return err
	}
	if err := os.Mkdir(in.shared(), 0o700); err != nil {
		return err
	}
	user := r.userOf(spec)
	in.UID, in.GID = user.uid, user.gid
	in.Network, in.Outgoing = r.network.missing.Empty(), spec.Outgoing
	if in.Network {
		if err := unix.Mkfifo(in.networkFile(), 0o600); err != nil {
			return err
		}
	}
	if user.drop {
		if err := os.Chown(in.shared(), int(user.uid), int(user.gid)); err != nil {
			return err
		}
	}
	if err := r.makeAPIDirs(in, user); err != nil {
		return err
	}
	mounts := spec.SortedMounts()
	if err := in.saveMounted(mounted{Mounts: mounts, Points: outermost(mounts)}); err != nil {
		return err
	}
	return os.WriteFile(in.tokenFile(), []byte(spec.Token), 0o600)
}

// gatedProcess is a started wrapper that waits for one line on a pipe before it
// becomes bubblewrap. It exits if this process dies before that.
type gatedProcess struct {
	cmd  *exec.Cmd
	gate *os.File
}

func (h *gatedProcess) open() error {
	defer h.gate.Close()
	_, err := h.gate.WriteString("go\n")
	return err
}

func (h *gatedProcess) kill() {
	h.gate.Close()
	h.cmd.Process.Kill()
	h.cmd.Wait()
}

// startGated starts the wrapper of an instance.
func (r *Runtime) startGated(in *instance, box *sandbox, command []string) (*gatedProcess, error) {
	read, gate, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	status, err := os.OpenFile(in.statusFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		gate.Close()
		return nil, err
	}
	defer status.Close()
	logFile, err := os.OpenFile(in.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		gate.Close()
		return nil, err
	}
	defer logFile.Close()
	cmd, err := box.command(in.mark(), read, status, command)
	if err == nil {
		cmd.Stdout, cmd.Stderr = logFile, logFile
		err = box.start(cmd)
	}
	if err != nil {
		gate.Close()
		return nil, fmt.Errorf("start the sandbox: %w", err)
	}
	return &gatedProcess{cmd: cmd, gate: gate}, nil
}
