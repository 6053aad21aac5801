package runtime

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"weir/models"
)

// Runtime runs workspaces, on one machine or on a cluster. The conformance suite
// in runtimetest tests every implementation.
//
// All methods are safe for concurrent use. They return quickly: they wait neither
// for readiness nor for termination.
type Runtime interface {
	// Start launches spec, detached from this process, and returns the
	// runtime's opaque state. If the generation of the workspace runs already,
	// Start returns its state; it can therefore be repeated after a crash.
	//
	// An error of kind unavailable means that a retry may succeed. After any
	// error, something may have been launched.
	Start(ctx context.Context, spec Spec) (State, error)

	// Poll returns the status of a workspace. If the workspace is gone, the phase
	// is PhaseExited; an error means that the status is unknown.
	Poll(ctx context.Context, state State) (Status, error)

	// Log returns the last lines that a workspace has printed, at most MaxLog bytes, with its
	// secrets masked; empty if it is gone.
	Log(ctx context.Context, state State) (string, error)

	// Stop terminates the workspace, and kills it if it still runs after a
	// grace period of the runtime. It does not wait: call it again until Poll
	// returns PhaseExited. Stopping a workspace that is gone is no error. Stop
	// also removes what only this generation needed.
	Stop(ctx context.Context, state State) error

	// List returns all running workspaces, so that those without a row in the
	// database can be stopped.
	List(ctx context.Context) ([]Instance, error)
}

// Namer is a Runtime that can return the state of a start that may have failed,
// so that what may have been launched can be polled and stopped.
type Namer interface {
	StateOf(project, workspace, generation int64) State
}

// Refresher is a Runtime, or Runs, that can mount other shared directories in what runs.
type Refresher interface {
	// Refresh makes the mounts of a running workspace those of a start with mounts. It
	// changes nothing if they are; after an error, it has to be repeated.
	// errors.ErrUnsupported means that only a restart can do it, and nothing was changed.
	// The workspace is then stopped if access was withdrawn, as without a Refresher.
	Refresh(ctx context.Context, state State, mounts []models.Mount) error
}

// Changes notifies one listener of the workspaces whose status has changed. A
// Runtime that embeds it need not be polled often.
type Changes struct {
	listener atomic.Pointer[func(workspace int64)]
}

// OnChange sets the listener, which must return at once. Earlier changes are not
// reported.
func (c *Changes) OnChange(listener func(workspace int64)) { c.listener.Store(&listener) }

// Changed notifies the listener, if there is one.
func (c *Changes) Changed(workspace int64) {
	if listener := c.listener.Load(); listener != nil {
		(*listener)(workspace)
	}
}

// Instance is a running workspace.
type Instance struct {
	Workspace  int64
	Generation int64
	State      State
	Ended      bool // of a run: it does not run any more, and has left its exit code and its log
}

// State identifies a started workspace to its runtime. It is persisted and opaque
// to others.
type State []byte

// Spec is all that a runtime needs to launch a workspace: the target launch
// parameters, with every reference resolved.
type Spec struct {
	Workspace  int64 // workspace id
	Generation int64 // counts the starts of this workspace
	Project    int64
	Member     int64 // member id, names the home directory

	// UID and GID are the member's and the project's on the file system, of the machine
	// or the storage server. 0: those of the runtime, which all workspaces share.
	UID, GID int64

	Command   []string          // the notebook program and its arguments
	Image     string            // for clusters
	Env       map[string]string // complete but for what the runtime adds
	Token     string            // the notebook's own secret
	Mounts    []models.Mount
	CPU       int64 // CPU milli; 0 is no limit
	Memory    int64 // MiB; 0 is no limit
	Shm       int64 // MiB of /dev/shm
	GPUs      []GPU
	Beside    int64  // of a run: the workspace in whose environment it is, whose programs may connect to it; 0: none
	Kernels   string // of a run: directory of the sockets of its workspace's kernels; empty: none
	Directory string // of a run: in which its command begins; empty: the home directory
	Node      string // name of the provider that has the GPUs; empty without any

	Outgoing *Outgoing // the only connections to other machines; nil: to all
}

// Outgoing are the machines to which a sandbox may open connections.
type Outgoing struct {
	Networks []netip.Prefix          `json:"networks"` // IPv4
	Names    map[string][]netip.Addr `json:"names"`    // the only ones that are known in the sandbox
	Unknown  []string                `json:"unknown"`  // listed, but without addresses at the start
}

// GPU is one share of a workspace on one device.
type GPU struct {
	UUID        string // of the GPU, or of a MIG instance
	Index       int    // on its machine; of an instance its GPU's
	Minor       int    // /dev/nvidia{Minor}; of an instance its GPU's
	Cores       int64
	MemoryMiB   int64
	Simulated   bool
	Enforcement string // exclusive, mig, mps, advisory
}

// Phase is the phase of a workspace in its runtime.
type Phase string

const (
	PhaseStarting Phase = "starting" // launched, does not respond yet
	PhaseRunning  Phase = "running"  // the notebook responds
	PhaseExited   Phase = "exited"   // gone
)

// Status is the status of a workspace in its runtime.
type Status struct {
	Phase    Phase
	Progress int         // of the start, estimated, in percent; 100 when running
	Message  models.Text // one line: the current activity, or why it exited
	ExitCode int         // when exited; -1 when unknown
	EndedAt  time.Time   // when exited; zero when unknown
	LogTail  string      // last lines of the notebook's log, at most 4 KiB
	Limits   []models.Limit
	Endpoint models.Endpoint // of the notebook, when running
	Stage    Stage           // of a start; determines its timeout
}

// Stage is a stage of a start: what it waits for.
type Stage string

const (
	StageLaunching   Stage = "launching"  // the runtime to accept it
	StageScheduling  Stage = "scheduling" // a node
	StagePreparing   Stage = "preparing"  // the setup on the node
	StagePulling     Stage = "pulling"    // the image
	StageMountFailed Stage = "mount_failed"
	StageImageFailed Stage = "image_failed"
	StageSetupFailed Stage = "setup_failed"
	StageStarting    Stage = "starting"  // the notebook to listen
	StageAnswering   Stage = "answering" // its first response
)

// Timeout is the maximum duration of a stage.
func (s Stage) Timeout() time.Duration {
	switch s {
	case StageScheduling: // a cluster autoscaler needs minutes for a node
		return 10 * time.Minute
	case StagePreparing, StagePulling: // images of tens of gigabytes over a slow network
		return 30 * time.Minute
	case StageMountFailed, StageImageFailed, StageSetupFailed: // storage or a registry may be unavailable for a while
		return 5 * time.Minute
	}
	return 2 * time.Minute
}
