package workspaces

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	"weir/models"
	"weir/models/store"
	"weir/workspaces/idleness"

	"weir/workspaces/runtime"
)

const stepTimeout = 5 * time.Second // of each part of a resync

// Reconciler moves every workspace from its actual state in the runtime to its
// desired state in the database. On the leader, it alone starts and stops
// workspaces; see [Reconciler.Run].
type Reconciler struct {
	config ReconcilerConfig

	resyncs          chan struct{}                 // a resync is requested
	workQueue        atomic.Pointer[delayingQueue] // nil while Run does not run
	trackers         trackers
	orphansCheckedAt time.Time
	sweptAt          time.Time
	queueChanged     atomic.Bool // a queued workspace may fit now
	queueServedAt    time.Time
	unmounted        unmounted          // workspaces; of refreshAll only
	runsUnmounted    unmounted          // of refreshRuns only
	observed         map[int64]observed // by workspace; of watchIdleness only
	runSteps         chan struct{}      // a step of all runs is requested

	runsSweptAt, runsRefreshedAt time.Time // of watchRuns only
	runTrackers                  trackers  // of runs
	printed                      sync.Map  // by run: size of its output at the last look
	runWork                      sync.Map  // by run: the last idleness.Observation

	partSteps        chan struct{} // a step of all deployments is requested
	partsSweptAt     time.Time     // of watchDeployments only, like the next one
	partFilesSweptAt time.Time
	followers        sync.WaitGroup
	planning         chan struct{}           // has an element while an update is planned
	requests         map[int64]requestsSeen  // by deployment that can become idle
	modelFiles       map[int64]*modelWatch   // by deployment that serves, or stops for its update
	writing          map[int64]*partsWriting // by deployment whose parts are not written yet
	writers          sync.WaitGroup
	watches          partWatches
	lostGPUs         map[int64]*lostGPU // by deployment that serves
}

// ReconcilerConfig are the collaborators of a Reconciler. All but Runs, Parts and what deployments
// need are required.
type ReconcilerConfig struct {
	Store   *store.Store
	Pool    Pool
	Storage Storage
	Runtime runtime.Runtime
	// Runs runs commands; nil in tests without runs.
	Runs runtime.Runs
	// RunEnv returns the environment variables that every run gets.
	RunEnv func(models.Run) map[string]string
	// Parts runs the parts of deployments, and Served writes their models; nil in tests without
	// deployments.
	Parts  runtime.Parts
	Served Served
	// FollowModel deploys the present files of a deployment's model, or, in the place of a failed
	// update, its fallback.
	FollowModel func(ctx context.Context, d models.Deployment) error
	// MoveDeployment deploys a deployment that has lost a GPU again on others, MoveAfter after that.
	MoveDeployment func(ctx context.Context, d models.Deployment, lost models.Text) error
	MoveAfter      time.Duration
	// Activity observes a running workspace; see [runtime.ReadActivity].
	Activity func(ctx context.Context, at models.Endpoint, token string) (idleness.Observation, error)
	// Env returns the environment variables that every workspace gets.
	Env func(context.Context, models.Workspace) (map[string]string, error)
	// Lookup returns the IPv4 addresses of a name; nil: by the resolver of this machine.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	Logger *slog.Logger
}

// NewReconciler returns a Reconciler, to be started by Run.
func NewReconciler(c ReconcilerConfig) *Reconciler {
	if c.Lookup == nil {
		c.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip4", name)
		}
	}
	r := &Reconciler{config: c, resyncs: make(chan struct{}, 1), runSteps: make(chan struct{}, 1),
		partSteps: make(chan struct{}, 1), planning: make(chan struct{}, 1), writing: map[int64]*partsWriting{}, watches: partWatches{},
		requests: map[int64]requestsSeen{}}
	r.queueChanged.Store(true)
	c.Store.OnChange(r.onChange)
	return r
}

// now is the time for spans that begin and end in this process: nobody who sets the clock, nor suspends the machine,
// lengthens them.
func (r *Reconciler) now() time.Time { return r.config.Store.Clock() }

// delayingQueue contains each workspace that is due for a step once.
type delayingQueue = workqueue.TypedDelayingInterface[int64]

// forEach calls fn for every item and joins the errors. Conflicts are not errors:
// another transaction was first.
func forEach[T any](list []T, fn func(T) error) error {
	var failed []error
	for _, item := range list {
		if err := fn(item); models.KindOf(err) != models.KindConflict {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// outputTopic is the topic of a run's output, before its id.
const outputTopic = "run-output:"

// onChange receives the topics of every commit.
func (r *Reconciler) onChange(topics []string) {
	affected := false
	for _, topic := range topics {
		if text, ok := strings.CutPrefix(topic, "workspace:"); ok {
			if id, err := strconv.ParseInt(text, 10, 64); err == nil {
				r.Enqueue(id)
			}
		}
		if strings.HasPrefix(topic, "run:") {
			r.StepRuns()
		}
		if strings.HasPrefix(topic, "deployment:") {
			r.StepDeployments()
		}
		affected = affected || !strings.HasPrefix(topic, "telemetry:") && !strings.HasPrefix(topic, outputTopic)
	}
	if affected { // a queued workspace may be able to start
		r.queueChanged.Store(true)
		r.Resync()
	}
}

// Resync requests a resync of all workspaces. It never blocks.
func (r *Reconciler) Resync() {
	select {
	case r.resyncs <- struct{}{}:
	default:
	}
}

// Enqueue requests a step of one workspace. It never blocks.
func (r *Reconciler) Enqueue(workspace int64) {
	if queue := r.workQueue.Load(); queue != nil {
		(*queue).Add(workspace)
	}
}

// StepRuns requests a step of all runs. It never blocks.
func (r *Reconciler) StepRuns() {
	select {
	case r.runSteps <- struct{}{}:
	default:
	}
}

// StepDeployments requests a step of all deployments. It never blocks.
func (r *Reconciler) StepDeployments() {
	select {
	case r.partSteps <- struct{}{}:
	default:
	}
}

func (r *Reconciler) logError(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		r.config.Logger.ErrorContext(ctx, "reconcile", "err", err)
	}
}
