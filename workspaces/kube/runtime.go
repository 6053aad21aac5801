package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"weir/models"
	"weir/workspaces"
)

const (
	startTimeout = 30 * time.Second // for the requests of one start
	syncTimeout  = 30 * time.Second // for the first picture of the cluster
	// volumeTimeout is how long a project's first start waits for the
	// cluster's controllers.
	volumeTimeout = 2 * time.Second
	quotaTimeout  = 3 * time.Second
	overdue       = 10 * time.Second // beyond its grace, before a pod is asked again to end
	forgetAfter   = 10 * time.Minute // what is gone, and records of what has ended that nobody stopped
)

// Runtime runs workspaces on a cluster. Make one with New.
type Runtime struct {
	config  Config
	client  kubernetes.Interface
	log     *slog.Logger
	now     func() time.Time
	changed chan struct{}
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	factory     informers.SharedInformerFactory // of what is ours
	nodeFactory informers.SharedInformerFactory
	pods        corelisters.PodLister
	namespaces  corelisters.NamespaceLister
	volumes     corelisters.PersistentVolumeLister
	nodes       corelisters.NodeLister

	memory   memory
	projects projects

	mu       sync.Mutex
	stopping map[types.UID]time.Time // when a pod was last asked to end
	gone     map[ref]farewell        // pods that were seen to go
}

// farewell is how a pod was when it went.
type farewell struct {
	status workspaces.Status
	at     time.Time
}

var (
	_ workspaces.Runtime = (*Runtime)(nil)
	_ workspaces.Lister  = (*Runtime)(nil)
)

// New makes a Runtime, and returns when it knows what runs. The error says
// all that is wrong with the configuration, or why the cluster cannot be used.
// What New starts in the background ends with Close, not with ctx.
func New(ctx context.Context, c Config) (*Runtime, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	at, err := c.restConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(at)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if _, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: c.selector(), Limit: 1}); err != nil {
		return nil, fmt.Errorf("the cluster at %s cannot be used: %w", at.Host, err)
	}
	r := &Runtime{config: c, client: client, log: c.Logger, now: c.Clock, changed: make(chan struct{}, 1),
		memory:   memory{pods: map[types.UID]*remembered{}},
		projects: projects{all: map[int64]*applied{}, drifted: make(chan int64, 64)},
		stopping: map[types.UID]time.Time{}, gone: map[ref]farewell{}}
	if err := r.watch(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// Changed receives after a workspace became ready or ended, or the cluster
// said something new about it, so that whoever polls can do so at once.
// Several changes may give one signal.
func (r *Runtime) Changed() <-chan struct{} { return r.changed }

// Close ends what this Runtime does in the background. What runs goes on.
func (r *Runtime) Close() error {
	r.cancel()
	r.factory.Shutdown()
	r.nodeFactory.Shutdown()
	r.wg.Wait()
	return nil
}

// Start launches spec; see [workspaces.Runtime]. It returns when the API
// server has the pod; errors that are for people are of kind conflict,
// no_capacity or unavailable.
func (r *Runtime) Start(ctx context.Context, spec workspaces.Spec) (workspaces.State, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	object, err := r.config.podObject(spec)
	if err != nil {
		return nil, err
	}
	if err := r.ensureProject(ctx, spec.Project); err != nil {
		return nil, refusal(err)
	}
	id := r.config.ref(spec)
	pod, err := r.pods.Pods(id.Namespace).Get(id.Pod)
	if apierrors.IsNotFound(err) {
		r.mu.Lock()
		delete(r.gone, id)
		r.mu.Unlock()
		pod, err = r.applyPod(ctx, id, object)
	}
	if err != nil {
		return nil, refusal(err)
	}
	if err := r.applyOwned(ctx, spec, pod); err != nil {
		return nil, refusal(err)
	}
	return id.state(), nil
}

// applyPod applies a pod. The cluster's quota counts what has ended for a
// moment longer than the pool does; that moment is waited for.
func (r *Runtime) applyPod(ctx context.Context, id ref, object *core.PodApplyConfiguration) (*corev1.Pod, error) {
	moment, cancel := context.WithTimeout(ctx, quotaTimeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		pod, err := r.client.CoreV1().Pods(id.Namespace).Apply(ctx, object, applyOptions)
		switch {
		case apierrors.IsInvalid(err): // it may be there already, made by another configuration
			found, missing := r.client.CoreV1().Pods(id.Namespace).Get(ctx, id.Pod, metav1.GetOptions{})
			if missing == nil {
				return found, nil
			}
			return nil, err
		case !exceedsQuota(err):
			return pod, err
		}
		select {
		case <-moment.Done():
			return nil, err
		case <-tick.C:
		}
	}
}

// refusal words for people why the cluster did not do what it was asked. What
// went wrong on our side stays as it is.
func refusal(err error) error {
	var status apierrors.APIStatus
	var unreachable *url.Error
	answered := errors.As(err, &status)
	switch {
	case !answered && (errors.As(err, &unreachable) || errors.Is(err, context.DeadlineExceeded)),
		apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err),
		apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err):
		return models.Unavailable(err, "The cluster does not answer.")
	case !answered:
		return err
	}
	e := models.Conflict("The cluster refused the workspace: %s", plain(status.Status().Message))
	if exceedsQuota(err) {
		e = models.NoCapacity("", "The project's part of the cluster is used up: %s", plain(status.Status().Message))
	}
	e.Err = err
	return e
}

// Poll tells how a workspace is; see [workspaces.Runtime].
func (r *Runtime) Poll(ctx context.Context, state workspaces.State) (workspaces.Status, error) {
	id, err := parseState(state)
	if err != nil {
		return workspaces.Status{}, err
	}
	pod, err := r.find(ctx, id)
	if err != nil {
		return workspaces.Status{}, err
	}
	if pod == nil {
		return r.lastSeen(id), nil
	}
	status := describe(pod, r.eventsOf(ctx, pod))
	status.LogTail = r.tailOf(ctx, pod)
	return status, nil
}

// find returns a pod as it was last seen, nil when it is gone. The API server
// is asked only for what the informer has not seen yet.
func (r *Runtime) find(ctx context.Context, id ref) (*corev1.Pod, error) {
	pod, err := r.pods.Pods(id.Namespace).Get(id.Pod)
	if err == nil {
		return pod, nil
	}
	r.mu.Lock()
	_, gone := r.gone[id]
	r.mu.Unlock()
	if gone {
		return nil, nil
	}
	pod, err = r.client.CoreV1().Pods(id.Namespace).Get(ctx, id.Pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return pod, err
}

// lastSeen tells how a pod ended that is gone.
func (r *Runtime) lastSeen(id ref) workspaces.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, ok := r.gone[id]; ok {
		return f.status
	}
	return workspaces.Status{Phase: workspaces.PhaseExited, ExitCode: -1, Message: models.Say("Jupyter is no longer running")}
}

// Stop asks a workspace to end; see [workspaces.Runtime]. The node ends by
// force what outlives its grace; when that is over and the pod is still there,
// Stop asks again with almost none.
//
// It never removes the record of a pod that may still run: on a node that
// does not answer, the workspace ends when the node is back, or has been
// removed from the cluster or marked as out of service.
func (r *Runtime) Stop(ctx context.Context, state workspaces.State) error {
	id, err := parseState(state)
	if err != nil {
		return err
	}
	pod, err := r.find(ctx, id)
	if err != nil || pod == nil {
		return err
	}
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	if !r.mayAsk(pod, &options) {
		return nil
	}
	err = r.client.CoreV1().Pods(id.Namespace).Delete(ctx, id.Pod, options)
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	r.mu.Lock()
	delete(r.stopping, pod.UID)
	r.mu.Unlock()
	return fmt.Errorf("stop %s in %s: %w", id.Pod, id.Namespace, err)
}

// mayAsk tells whether a pod shall be asked to end now, and notes that it is.
func (r *Runtime) mayAsk(pod *corev1.Pod, options *metav1.DeleteOptions) bool {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	last, asked := r.stopping[pod.UID]
	switch {
	case !asked && pod.DeletionTimestamp == nil:
	case now.Sub(last) >= overdue && pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) >= overdue:
		little := int64(1) // 0 would drop the record of what may still run
		options.GracePeriodSeconds = &little
	case asked && pod.DeletionTimestamp == nil && now.Sub(last) >= overdue: // the first was lost
	default:
		return false
	}
	r.stopping[pod.UID] = now
	return true
}

// List tells what runs, by its labels alone. Records of what has ended, and
// that nobody has stopped in a while, it removes.
func (r *Runtime) List(ctx context.Context) ([]workspaces.Instance, error) {
	pods, err := r.pods.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var all []workspaces.Instance
	present := map[types.UID]bool{}
	for _, pod := range pods {
		present[pod.UID] = true
		id, ok := refOf(pod)
		switch {
		case !ok:
		case !ended(pod):
			all = append(all, workspaces.Instance{Workspace: id.Workspace, Generation: id.Generation, State: id.state()})
		case r.abandoned(pod):
			if err := r.Stop(ctx, id.state()); err != nil {
				return nil, err
			}
		}
	}
	r.memory.keep(present) // what it lost can be asked for again
	slices.SortFunc(all, func(a, b workspaces.Instance) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Generation, b.Generation))
	})
	return all, nil
}

// abandoned tells whether a pod was seen to have ended long ago.
func (r *Runtime) abandoned(pod *corev1.Pod) bool {
	m, now := r.memory.of(pod.UID), r.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended.IsZero() {
		m.ended = now
	}
	return now.Sub(m.ended) >= forgetAfter
}
