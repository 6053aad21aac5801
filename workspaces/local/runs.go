package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
)

// Runs runs commands until they end, in the same sandbox as workspaces. What it starts is
// detached: it outlives a killed server, and bubblewrap writes the exit code, so that
// later Runs over the same directory know it even if the command ended in between.
type Runs struct {
	runtime    *Runtime
	terminated map[key]bool // SIGTERM was sent; guarded by runtime.mu
}

var _ runtime.Runs = (*Runs)(nil)

// NewRuns returns Runs on c.Dir, which must not be that of a Runtime.
func NewRuns(c Config) (*Runs, error) {
	r, err := New(c)
	if err != nil {
		return nil, err
	}
	r.commands = true
	return &Runs{runtime: r, terminated: map[key]bool{}}, nil
}

// Start runs a command in the environment, the directories and with the GPUs of spec,
// whose own Command names the notebook beside whose program the command is searched for.
// A run that was started already is not started again, also if it has ended.
func (r *Runs) Start(ctx context.Context, run int64, spec runtime.Spec, command []string) (runtime.State, error) {
	if run <= 0 || len(command) == 0 {
		return nil, errors.New("a run needs a positive id and a command")
	}
	notebook, err := checkSpec(spec)
	if err != nil {
		return nil, err
	}
	spec.Command, spec.Token = notebook, ""
	k := key{workspace: run, generation: 1}
	if in, err := r.runtime.load(k); err == nil {
		switch rep := in.sandboxStatus(); {
		case rep.unknown:
			return nil, models.Unavailable(errUnknown, "The run could not be started.")
		case rep.Child != 0:
			return in.state(), nil
		}
	}
	return r.runtime.start(ctx, k, spec, runtime.RunCommand("", spec.Directory, command))
}

// Poll returns the status of a run, and keeps its log within bounds.
func (r *Runs) Poll(_ context.Context, state runtime.State) (runtime.RunStatus, error) {
	in, err := r.runtime.parseState(state)
	if err != nil {
		return runtime.RunStatus{}, err
	}
	if err := in.boundLog(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.runtime.config.Logger.Warn("cannot shorten a run's log", "run", in.Workspace, "error", err)
	}
	status := runtime.RunStatus{ExitCode: -1, Limits: in.Limits, Ended: in.exited(), OutOfMemory: in.Cgroup.outOfMemory() > 0,
		CPU: in.Cgroup.cpuTime()}
	if info, err := os.Stat(in.logFile()); err == nil {
		status.Printed = info.Size()
	}
	if !status.Ended {
		r.runtime.checkShared(in)
		status.Ran = in.age()
		r.runtime.mu.Lock()
		defer r.runtime.mu.Unlock()
		r.runtime.watch(in, nil)
		return status, nil
	}
	rep := in.sandboxStatus()
	if rep.unknown {
		return runtime.RunStatus{}, errUnknown
	}
	if rep.ExitCode != nil {
		status.ExitCode, status.EndedAt = *rep.ExitCode, r.runtime.endedAt(in)
	}
	status.Message = r.runtime.reasonOf(in)
	return status, nil
}

// Signal sends a signal to the command of a run. It reports whether the command was there
// to receive it: not before its sandbox stands, nor when it has ended.
func (r *Runs) Signal(_ context.Context, state runtime.State, sig unix.Signal) (bool, error) {
	in, err := r.runtime.parseState(state)
	if err != nil {
		return false, err
	}
	return in.signal(sig), nil
}

// Stop sends SIGTERM to a run, and SIGKILL after the grace period. It does not wait: call
// it again until Poll says that the run has ended. The exit code and the log remain.
func (r *Runs) Stop(_ context.Context, state runtime.State) error {
	in, err := r.runtime.parseState(state)
	if err != nil {
		return err
	}
	r.runtime.mu.Lock()
	defer r.runtime.mu.Unlock()
	if in.exited() {
		r.forgetStop(in.key())
		return nil
	}
	r.runtime.watch(in, nil)
	now := r.runtime.config.Clock()
	if _, stopping := r.runtime.stopping[in.key()]; !stopping {
		r.runtime.stopping[in.key()] = now
	}
	switch waited := now.Sub(r.runtime.stopping[in.key()]); {
	case waited >= 2*stopGrace:
		in.kill()
	case waited >= stopGrace:
		in.killInner(in.sandboxStatus()) // bubblewrap outside it writes the exit code
	case !r.terminated[in.key()]:
		r.terminated[in.key()] = in.terminate() // false until the sandbox stands
	}
	return nil
}

func (r *Runs) forgetStop(k key) {
	delete(r.runtime.stopping, k)
	delete(r.terminated, k)
}

// Remove deletes the exit code and the log of a run that has ended.
func (r *Runs) Remove(ctx context.Context, state runtime.State) error {
	in, err := r.runtime.parseState(state)
	if err != nil {
		return err
	}
	return untilEmpty(ctx, func() error {
		r.runtime.mu.Lock()
		defer r.runtime.mu.Unlock()
		if !in.exited() {
			return models.Conflict("The run has not ended.")
		}
		r.forgetStop(in.key())
		return r.runtime.remove(in)
	})
}

// Log returns at most limit bytes of what a run has printed, from a byte offset on, and the
// offset of the first of them: a later one than asked for if what was there is no longer
// kept.
func (r *Runs) Log(state runtime.State, offset int64, limit int) ([]byte, int64, error) {
	in, err := r.runtime.parseState(state)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(in.logFile())
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	kept, err := f.Seek(0, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		kept, err = info.Size(), nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("the log of run %d: %w", in.Workspace, err)
	}
	offset = min(max(offset, kept, 0), info.Size())
	b := make([]byte, min(int64(limit), info.Size()-offset))
	n, err := f.ReadAt(b, offset)
	return b[:n], offset, err
}

// OnChange sets the listener of runs that have ended, by id; see [runtime.Changes].
func (r *Runs) OnChange(listener func(run int64)) { r.runtime.OnChange(listener) }

// List returns the runs that run, or have left something; the Workspace of an instance is
// the run's id.
func (r *Runs) List(context.Context) ([]runtime.Instance, error) {
	running, ended, err := r.runtime.list()
	return append(running, ended...), err
}

// Refresh makes the mounts of a run those of a start with mounts; see [runtime.Refresher].
func (r *Runs) Refresh(ctx context.Context, state runtime.State, mounts []models.Mount) error {
	return r.runtime.Refresh(ctx, state, mounts)
}

// Close ends what Runs does in the background. Commands continue to run.
func (r *Runs) Close() error { return r.runtime.Close() }

const (
	runLogLimit = 64 << 20 // size of what is kept from which a run's log is shortened
	runLogKeep  = 32 << 20 // size after that
)

// boundLog frees the beginning of a long log. Its size does not change, so that offsets
// remain valid and nothing that the command prints at the same time is lost. It also frees what
// the command has allocated beyond the end; only then, what it prints at that moment can be lost.
func (in *instance) boundLog() error {
	f, err := os.OpenFile(in.logFile(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Blocks*blockSize <= runLogLimit {
		return nil
	}
	const page = 4096 // whole pages are freed, others only zeroed
	if free := (st.Size - runLogKeep) / page * page; free > 0 {
		err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, free)
	}
	if err = errors.Join(err, unix.Fstat(int(f.Fd()), &st)); err == nil && st.Blocks*blockSize > runLogLimit {
		err = f.Truncate(st.Size)
	}
	return err
}

// open opens what a run has made in the shared directory of its sandbox. It must be of a type
// and belong to the run's user, whatever the sandbox has put there.
func (r *Runs) open(in *instance, name string, flags int, kind uint32) (int, unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := unix.Open(filepath.Join(in.shared(), name), flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, st, err
	}
	err = unix.Fstat(fd, &st)
	if err == nil && (st.Mode&unix.S_IFMT != kind || st.Uid != cmp.Or(in.UID, r.runtime.user.uid)) {
		err = fmt.Errorf("%s of run %d is not what it made", name, in.Workspace)
	}
	if err != nil {
		return -1, st, errors.Join(err, unix.Close(fd))
	}
	return fd, st, nil
}

// File returns a file in the shared directory of a run's sandbox; see [runtime.Runs].
func (r *Runs) File(state runtime.State, name string, limit int64) ([]byte, error) {
	in, err := r.runtime.parseState(state)
	if err != nil {
		return nil, err
	}
	fd, st, err := r.open(in, name, unix.O_RDONLY, unix.S_IFREG)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if st.Size > limit || st.Nlink != 1 { // another name could be that of somebody else's file
		return nil, fmt.Errorf("%s of run %d has %d bytes and %d names: %w", name, in.Workspace, st.Size, st.Nlink, fs.ErrNotExist)
	}
	return io.ReadAll(io.LimitReader(f, st.Size)) // what is appended meanwhile is for the next look
}

// partSocket is what a part listens to, in the shared directory of its sandbox.
const partSocket = "part.sock"

// Address is where the command of a part has to listen; see [runtime.Parts].
func (r *Runs) Address() string { return innerRun + "/" + partSocket }

// Dial connects to the command of a part; see [runtime.Parts].
func (r *Runs) Dial(ctx context.Context, state runtime.State) (net.Conn, error) {
	in, err := r.runtime.parseState(state)
	if err != nil {
		return nil, err
	}
	fd, _, err := r.open(in, partSocket, unix.O_PATH, unix.S_IFSOCK)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return new(net.Dialer).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", fd))
}
