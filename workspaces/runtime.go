package workspaces

import (
	"context"
	"sync/atomic"
	"time"

	"weir/models"
)

// Runtime runs workspaces. It is the only thing that differs between one
// machine and a cluster; the conformance suite in runtimetest holds every
// implementation to the same behaviour.
//
// All methods return quickly (no waiting for readiness or for an end) and are
// safe for concurrent use.
type Runtime interface {
	// Start launches spec, detached from this process, and returns the
	// runtime's own opaque state. Starting what already runs under the same
	// workspace and generation returns the state of the running one: Start
	// after a crash is safe.
	//
	// An error of kind unavailable says that it can be tried again. After any
	// error something may have been launched all the same.
	Start(ctx context.Context, spec Spec) (State, error)

	// Poll returns the status of the workspace behind state. A workspace that is
	// gone is PhaseExited, never an error; an error means "cannot tell".
	Poll(ctx context.Context, state State) (Status, error)

	// Stop asks the workspace to end and, when it has not after a grace
	// period of the runtime's choice, ends it by force. It does not wait:
	// call it again until Poll says PhaseExited. Stopping what is gone is
	// no error. It also removes what only this generation needed.
	Stop(ctx context.Context, state State) error
}

// Lister is a Runtime that can say what it is running, so that what the
// database does not know of can be found and stopped.
type Lister interface {
	List(ctx context.Context) ([]Instance, error)
}

// Namer is a Runtime that knows what the state of a start is, whether or not
// it came to be: what may have been launched can be stopped and asked about by
// it.
type Namer interface {
	StateOf(project, workspace, generation int64) State
}

// Changes tells one listener which workspaces have changed in a runtime: that
// they answer, have ended, or that there is something new to say of them. A
// Runtime that embeds it need not be polled often.
type Changes struct {
	listener atomic.Pointer[func(workspace int64)]
}

// OnChange sets the listener, which must return at once. What changed before
// is not told.
func (c *Changes) OnChange(listener func(workspace int64)) { c.listener.Store(&listener) }

// Changed tells the listener, if there is one.
func (c *Changes) Changed(workspace int64) {
	if listener := c.listener.Load(); listener != nil {
		(*listener)(workspace)
	}
}

// Instance is one workspace that a runtime runs, known or not.
type Instance struct {
	Workspace  int64
	Generation int64
	State      State
}

// State is a runtime's own record of a running workspace; only the runtime
// reads it. It is persisted as it is.
type State []byte

// Spec is everything that a runtime needs to launch a workspace: the target
// launch parameters, with every reference resolved.
type Spec struct {
	Workspace  int64 // workspace id
	Generation int64 // counts the starts of this workspace
	Project    int64
	Member     int64 // member id, names the home directory
	User       string

	Command []string          // the notebook program and its arguments
	Image   string            // for clusters
	Env     map[string]string // complete but for what the runtime adds
	Token   string            // the notebook's own secret
	Mounts  []Mount
	CPU     int64 // CPU milli; 0 is no limit
	Memory  int64 // MiB; 0 is no limit
	Shm     int64 // MiB of /dev/shm
	GPUs    []GPU
	Node    string // name of the provider that has the GPUs; empty without any
}

// Mount is one shared directory as the workspace sees it.
type Mount struct {
	Source   string // on the host or on the storage server
	Target   string // inside the workspace
	ReadOnly bool
}

// GPU is one share that the workspace holds on one device.
type GPU struct {
	UUID        string // of the GPU, or of a MIG instance
	Index       int    // on its machine; of an instance its GPU's
	Minor       int    // /dev/nvidia{Minor}; of an instance its GPU's
	Cores       int64
	MemoryMiB   int64
	Simulated   bool
	Enforcement string // exclusive, mig, mps, advisory
}

// Phase is where a workspace stands in its runtime.
type Phase string

const (
	PhaseStarting Phase = "starting" // launched, does not answer yet
	PhaseRunning  Phase = "running"  // the notebook answers
	PhaseExited   Phase = "exited"   // gone
)

// Status is what Poll saw.
type Status struct {
	Phase    Phase
	Progress int         // percent of the start, a guess for a bar; 100 when running
	Message  models.Text // one line: what it is doing, or why it exited
	ExitCode int         // when exited; -1 when unknown
	LogTail  string      // last lines of the notebook's log, at most 4 KiB
	Limits   []Limit
	Endpoint Endpoint // where the notebook answers, when running
	Stage    Stage    // of a start; decides when it is given up
}

// Stage is what a start waits for.
type Stage string

const (
	StageLaunching   Stage = "launching"  // for the runtime to take it
	StageScheduling  Stage = "scheduling" // for a node
	StagePreparing   Stage = "preparing"  // for the node to set it up
	StagePulling     Stage = "pulling"    // for the image
	StageMountFailed Stage = "mount_failed"
	StageImageFailed Stage = "image_failed"
	StageSetupFailed Stage = "setup_failed"
	StageStarting    Stage = "starting"  // for the notebook to listen
	StageAnswering   Stage = "answering" // for its first answer
)

// timeout is how long a start may stay in a stage.
func (s Stage) timeout() time.Duration {
	switch s {
	case StageScheduling: // a cluster that grows by itself needs minutes for a node
		return 10 * time.Minute
	case StagePreparing, StagePulling: // images of tens of gigabytes over a slow network
		return 30 * time.Minute
	case StageMountFailed, StageImageFailed, StageSetupFailed: // storage that is away, a registry that does not answer
		return 5 * time.Minute
	}
	return 2 * time.Minute
}

// Limit says of one resource how it is enforced, in one word for people:
// "enforced" with how, or "not enforced" with why.
type Limit struct {
	Resource string      `json:"resource"` // cpu, memory, gpu
	Enforced bool        `json:"enforced"`
	How      models.Text `json:"how"`
}

// Endpoint is an address to dial: network "unix" or "tcp".
type Endpoint struct {
	Network string `json:"network"`
	Address string `json:"address"`
}
