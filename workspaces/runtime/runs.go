package runtime

import (
	"cmp"
	"context"
	"net"
	"syscall"
	"time"

	"weir/models"
)

// Runs runs commands until they end, where the Runtime of the same mode runs workspaces.
// What it starts outlives a killed server. The conformance suite in runtimetest tests every
// implementation. All methods are safe for concurrent use, and none waits for the command.
type Runs interface {
	// Start starts a command in the environment, the directories and with the GPUs of
	// spec. A run that was started already is not started again, also if it has ended.
	Start(ctx context.Context, run int64, spec Spec, command []string) (State, error)
	Poll(ctx context.Context, state State) (RunStatus, error)
	// Signal sends a signal to the command and reports whether it was there to receive it.
	Signal(ctx context.Context, state State, sig syscall.Signal) (bool, error)
	// Stop ends a run, gently at first. Call it again until Poll says that it has ended.
	Stop(ctx context.Context, state State) error
	// Remove deletes what a run that has ended has left.
	Remove(ctx context.Context, state State) error
	// Log returns at most limit bytes of the output from an offset on, and the offset of
	// the first of them: a later one than asked for if what was there is no longer kept.
	// It is fs.ErrNotExist when the run was removed.
	Log(state State, offset int64, limit int) ([]byte, int64, error)
	// File returns a file that a run has written to its own directory, such as
	// [GraphJournal]. It is fs.ErrNotExist if there is none, if it has more than limit bytes,
	// or where runs have no such directory.
	File(state State, name string, limit int64) ([]byte, error)
	// List returns what runs, and what runs that have ended have left; the Workspace of
	// an instance is the run's id.
	List(ctx context.Context) ([]Instance, error)
}

// Parts are runs whose commands are connected to: the parts of deployments.
type Parts interface {
	Runs
	// Address is where the command of a part has to listen: the path of a socket in its
	// environment, or :PORT on all its addresses.
	Address() string
	// Dial connects to what listens there.
	Dial(ctx context.Context, state State) (net.Conn, error)
}

// Reachable are runs to which the programs in their workspaces connect over the network.
type Reachable interface {
	// Reach returns the address, HOST:PORT; empty if it is not known, or not any more.
	Reach(ctx context.Context, state State) (string, error)
}

// GraphJournal is the file in which a task graph that is a run keeps its progress, and
// GraphJournalVariable names its path in the environment of the run.
const (
	GraphJournal         = "graph.journal"
	GraphJournalVariable = "WEIR_GRAPH_JOURNAL"
)

// execute becomes a command in a directory, found by the PATH of the environment, with the exit
// codes of a shell if it cannot. As it replaces the shell, signals reach the command itself.
const execute = `cd -- "$1" 2>/dev/null || { echo "weir: directory: $1 does not exist in this run, or cannot be entered" >&2; exit 126; }
shift; exec "$@"`

// RunCommand is what a runtime executes for the command of a run: a shell that becomes it after
// what is specific to the runtime.
func RunCommand(before, directory string, command []string) []string {
	return append([]string{"/bin/sh", "-c", before + execute, "sh", cmp.Or(directory, NotebookHome)}, command...)
}

// RunStatus is the status of a run. Until it has ended, ExitCode is -1. It remains -1 if
// nobody could record it, as when the machine was restarted. As in shells, 128 + n means
// that signal n ended it, 127 that there is no such command.
type RunStatus struct {
	Ended       bool
	EndedAt     time.Time // zero if it is not known
	ExitCode    int
	Ran         time.Duration // since its start, by a clock that nobody sets; until it has ended
	Printed     int64         // bytes of output so far
	CPU         time.Duration // used by its processes so far; 0 also if it is not known
	OutOfMemory bool          // a process was killed by the memory limit
	Limits      []models.Limit
	Stage       Stage       // of a start that is not over; empty once the command runs
	Message     models.Text // what the start waits for, or what has ended the run but for its command
}
