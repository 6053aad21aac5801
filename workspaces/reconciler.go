package workspaces

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	"weir/models"
)

// Reconciler drives every workspace from what the database wants to what the
// runtime has. It alone starts and stops, on the leading server. [Reconciler.Run]
// is its loop.
type Reconciler struct {
	store   *models.Store
	pool    Pool
	ledger  Ledger
	storage Storage
	runtime Runtime
	env     func(models.Workspace) map[string]string
	fence   func(*models.Queries) error
	log     *slog.Logger

	resyncs          chan struct{}                 // a round is requested
	workQueue        atomic.Pointer[delayingQueue] // nil while Run does not run
	trackers         trackers
	orphansCheckedAt time.Time
	sweptAt          time.Time
	queueChanged     atomic.Bool // a waiting workspace may fit now
	queueServedAt    time.Time
}

// ReconcilerConfig names what a Reconciler works with.
type ReconcilerConfig struct {
	Store   *models.Store
	Pool    Pool
	Ledger  Ledger
	Storage Storage
	Runtime Runtime
	// Env gives a workspace the variables by which it finds the portal.
	Env func(models.Workspace) map[string]string
	// Fence refuses the transactions of a server that does not lead any more;
	// nil where there is only one.
	Fence  func(*models.Queries) error
	Logger *slog.Logger
}

// NewReconciler makes a Reconciler; Run starts it.
func NewReconciler(c ReconcilerConfig) *Reconciler {
	r := &Reconciler{store: c.Store, pool: c.Pool, ledger: c.Ledger, storage: c.Storage, runtime: c.Runtime,
		env: c.Env, fence: c.Fence, log: c.Logger, resyncs: make(chan struct{}, 1), trackers: trackers{all: map[int64]*tracker{}}}
	r.queueChanged.Store(true)
	c.Store.OnChange(r.onChange)
	return r
}

// delayingQueue holds the workspaces that are to take a step, each once.
type delayingQueue = workqueue.TypedDelayingInterface[int64]

// tx is a transaction of the leader.
func (r *Reconciler) tx(ctx context.Context, fn func(*models.Queries) error) error {
	return r.store.InTx(ctx, func(q *models.Queries) error {
		if r.fence != nil {
			if err := r.fence(q); err != nil {
				return err
			}
		}
		return fn(q)
	})
}

func (r *Reconciler) transition(ctx context.Context, w *models.Workspace, from models.WorkspaceState, message models.Text) error {
	version := w.Version
	return r.tx(ctx, func(q *models.Queries) error {
		w.Version = version // also of a retry
		return q.Transition(w, from, message)
	})
}

// onChange is called by the store with what has changed.
func (r *Reconciler) onChange(topics []string) {
	affected := false
	for _, topic := range topics {
		if text, ok := strings.CutPrefix(topic, "workspace:"); ok {
			if id, err := strconv.ParseInt(text, 10, 64); err == nil {
				r.Enqueue(id)
			}
		}
		affected = affected || affectsQueue(topic)
	}
	if affected {
		r.queueChanged.Store(true)
		r.Resync()
	}
}

// affectsQueue reports whether a change may let a waiting workspace start: a
// measurement of a GPU does not.
func affectsQueue(topic string) bool { return !strings.HasPrefix(topic, "telemetry:") }

// Resync asks for a round now; it never blocks.
func (r *Reconciler) Resync() {
	select {
	case r.resyncs <- struct{}{}:
	default:
	}
}

// Enqueue asks for a step of one workspace now; it never blocks.
func (r *Reconciler) Enqueue(workspace int64) {
	if queue := r.workQueue.Load(); queue != nil {
		(*queue).Add(workspace)
	}
}

func (r *Reconciler) logError(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, models.ErrFenced) {
		r.log.ErrorContext(ctx, "reconcile", "err", err)
	}
}
