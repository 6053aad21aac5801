package kube

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
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
	"k8s.io/client-go/rest"

	"weir/models"
	"weir/workspaces/runtime"
)

const (
	startTimeout   = 10 * time.Second // of all requests of one start
	requestTimeout = 5 * time.Second  // of other requests
	syncTimeout    = 30 * time.Second // of the initial lists of the informers
	// volumeTimeout is how long a project's first start waits for the
	// cluster's controllers.
	volumeTimeout    = 2 * time.Second
	retryDeleteAfter = 10 * time.Second // beyond the grace period, until a deletion is retried
	forgetAfter      = 10 * time.Minute // for final statuses, and for ended pods that were not stopped
)

// Runtime runs workspaces on a cluster. Make one with New.
type Runtime struct {
	config      Config
	rest        *rest.Config
	client      kubernetes.Interface
	watchClient kubernetes.Interface // for informers; see retryTransport
	unreachable *atomic.Bool         // the informers cannot follow the cluster now
	requests    requestMetrics
	log         *slog.Logger
	now         func() time.Time
	runtime.Changes
	cancel context.CancelFunc
	wg     sync.WaitGroup

	factory         informers.SharedInformerFactory // of objects of this installation
	nodeFactory     informers.SharedInformerFactory
	podLister       corelisters.PodLister
	namespaceLister corelisters.NamespaceLister
	volumeLister    corelisters.PersistentVolumeLister
	claimLister     corelisters.PersistentVolumeClaimLister
	nodeLister      corelisters.NodeLister

	pods     podCache
	projects projects

	mu       sync.Mutex
	stopping map[types.UID]time.Time // time of the last deletion request
	deleted  map[ref]lastStatus
	labels   map[ref]map[string]string // of the pods that are watched, when they were first seen
}

// lastStatus is the status of a pod when it was deleted.
type lastStatus struct {
	status runtime.Status
	at     time.Time
	// unconfirmed is set if the pod was not stopped: it may still run, without
	// the labels by which it is watched.
	unconfirmed bool
	labels      map[string]string // before the deletion
}

var _ runtime.Runtime = (*Runtime)(nil)

// New returns a Runtime after the initial lists of the informers. The error
// contains all problems of the configuration, or the reason why the cluster cannot
// be used. What New starts in the background ends with Close, not with ctx.
func New(ctx context.Context, c Config) (*Runtime, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	at, err := c.restConfig()
	if err != nil {
		return nil, err
	}
	requests := newRequestMetrics()
	at.Wrap(requests.through)
	client, err := kubernetes.NewForConfig(at)
	if err != nil {
		return nil, err
	}
	unreachable := &atomic.Bool{}
	retrying := rest.CopyConfig(at)
	retrying.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return retryTransport{next, retryPeriod, c.Logger, unreachable}
	})
	watchClient, err := kubernetes.NewForConfig(retrying)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if _, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: c.selector(), Limit: 1}); err != nil {
		return nil, fmt.Errorf("the cluster at %s cannot be used: %w", at.Host, err)
	}
	if c.Storage, err = c.Storage.resolve(ctx, client); err != nil {
		return nil, fmt.Errorf("the storage of the shared directories: %w", err)
	}
	r := &Runtime{config: c, rest: at, client: client, watchClient: watchClient, unreachable: unreachable, requests: requests, log: c.Logger,
		now:      c.Clock,
		projects: projects{drifted: make(chan int64, 64)},
		stopping: map[types.UID]time.Time{}, deleted: map[ref]lastStatus{}, labels: map[ref]map[string]string{}}
	if err := r.watch(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// Close ends what this Runtime does in the background. Workspaces continue to run.
func (r *Runtime) Close() error {
	r.cancel()
	r.factory.Shutdown()
	r.nodeFactory.Shutdown()
	r.wg.Wait()
	return nil
}

// Start launches spec; see [runtime.Runtime]. It returns when the pod is created.
// Errors for people are of kind conflict, or of kind unavailable if a retry may
// succeed. The state is also returned with an error if the pod may exist.
func (r *Runtime) Start(ctx context.Context, spec runtime.Spec) (runtime.State, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	object, err := r.config.podObject(spec)
	if err != nil {
		return nil, err
	}
	id := r.config.ref(spec)
	pod, uncertain, err := r.createPod(ctx, id, spec.Project, object)
	if uncertain {
		return id.state(), refusal(err)
	}
	if err != nil {
		return nil, refusal(err)
	}
	models.Failpoint("kube.pod")
	err = r.applyOwned(ctx, spec, pod)
	models.Failpoint("kube.secret")
	return id.state(), refusal(err)
}

// createPod returns a pod of a project, and creates it if it does not exist. With an error,
// uncertain says that the pod may exist.
func (r *Runtime) createPod(ctx context.Context, id ref, project int64, object *core.PodApplyConfiguration) (
	pod *corev1.Pod, uncertain bool, err error) {
	if err := r.ensureProject(ctx, project); err != nil {
		return nil, false, err
	}
	if pod, err = r.ensurePod(ctx, id, object); err != nil {
		r.projects.invalidate(project, err)
		return nil, ambiguous(err), err
	}
	return pod, false, nil
}

// ensurePod returns the pod of a start, and creates it if it does not exist.
func (r *Runtime) ensurePod(ctx context.Context, id ref, object *core.PodApplyConfiguration) (*corev1.Pod, error) {
	pods := r.client.CoreV1().Pods(id.Namespace)
	pod, err := r.podLister.Pods(id.Namespace).Get(id.Pod)
	if err == nil && !r.config.owns(pod) {
		return nil, models.Conflict("The cluster runs %s in %s for another installation.", id.Pod, id.Namespace)
	}
	if !apierrors.IsNotFound(err) {
		return pod, err
	}
	r.mu.Lock()
	delete(r.deleted, id)
	r.mu.Unlock()
	pod, err = pods.Apply(ctx, object, applyOptions)
	if apierrors.IsInvalid(err) { // it may exist, created with another configuration
		if found, missing := pods.Get(ctx, id.Pod, metav1.GetOptions{}); missing == nil {
			return found, nil
		}
	}
	return pod, err
}

// Poll returns the status of a workspace; see [runtime.Runtime].
func (r *Runtime) Poll(ctx context.Context, state runtime.State) (runtime.Status, error) {
	id, err := parseState(state)
	if err != nil {
		return runtime.Status{}, err
	}
	pod, err := r.find(ctx, id)
	if err != nil {
		return runtime.Status{}, err
	}
	if pod == nil {
		return r.finalStatus(id), nil
	}
	status := describe(pod, r.eventsOf(ctx, pod))
	status.LogTail = r.logTailOf(ctx, pod)
	return status, nil
}

// find returns a pod from the informer or else from the API server; nil when it is
// deleted. While the informers cannot follow the cluster, the API server is asked for what
// starts: it may have gone on.
func (r *Runtime) find(ctx context.Context, id ref) (*corev1.Pod, error) {
	if !r.config.has(id) {
		return nil, nil
	}
	pod, err := r.podLister.Pods(id.Namespace).Get(id.Pod)
	stale := err == nil && r.unreachable.Load() && !podEnded(pod) && !containerReady(containerOf(pod))
	if err == nil && !stale && r.config.owns(pod) && r.config.missingLabels(pod, id, nil) == nil {
		return pod, nil
	}
	r.mu.Lock()
	last, deleted := r.deleted[id]
	if !deleted {
		last.labels = r.labels[id] // the deletion can be recorded after the lister knows of it
	}
	r.mu.Unlock()
	if deleted && !last.unconfirmed {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pods := r.client.CoreV1().Pods(id.Namespace)
	pod, err = pods.Get(ctx, id.Pod, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if deleted {
			last.unconfirmed = false
			r.mu.Lock()
			r.deleted[id] = last
			r.mu.Unlock()
		}
		return nil, nil
	case err != nil:
		return nil, refusal(err)
	case !r.config.owns(pod):
		return nil, nil
	}
	if labels := r.config.missingLabels(pod, id, last.labels); len(labels) > 0 {
		if pod, err = pods.Patch(ctx, id.Pod, types.MergePatchType, labels, metav1.PatchOptions{FieldManager: manager}); err != nil {
			return nil, refusal(err)
		}
		r.log.WarnContext(ctx, "a pod's labels were removed by others; it has them again", "pod", id.Pod, "namespace", id.Namespace)
	}
	return pod, nil
}

// finalStatus returns the status of a deleted pod.
func (r *Runtime) finalStatus(id ref) runtime.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, ok := r.deleted[id]; ok {
		return f.status
	}
	return runtime.Status{Phase: runtime.PhaseExited, ExitCode: -1, Message: models.Say("Jupyter is no longer running")}
}

// Stop deletes the pod of a workspace; see [runtime.Runtime]. The node kills
// what exceeds the grace period; if the pod exists after that, Stop deletes it
// again with a grace period of one second.
//
// Stop never force-deletes a pod that may still run: on a node that does not
// respond, the workspace ends when the node is back, or has been removed from the
// cluster or marked as out of service.
func (r *Runtime) Stop(ctx context.Context, state runtime.State) error {
	id, err := parseState(state)
	if err != nil {
		return err
	}
	pod, err := r.find(ctx, id)
	if err != nil || pod == nil {
		return err
	}
	return r.deletePod(ctx, pod)
}

// deletePod deletes a pod, unless that was requested a moment ago.
func (r *Runtime) deletePod(ctx context.Context, pod *corev1.Pod) error {
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	if !r.shouldDelete(pod, &options) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := r.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	models.Failpoint("kube.deleted")
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	r.mu.Lock()
	delete(r.stopping, pod.UID)
	r.mu.Unlock()
	return refusal(fmt.Errorf("stop %s in %s: %w", pod.Name, pod.Namespace, err))
}

// shouldDelete reports whether a deletion is to be requested now, and records it.
func (r *Runtime) shouldDelete(pod *corev1.Pod, options *metav1.DeleteOptions) bool {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	last, asked := r.stopping[pod.UID]
	switch {
	case !asked && pod.DeletionTimestamp == nil:
	case now.Sub(last) >= retryDeleteAfter && pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) >= retryDeleteAfter:
		options.GracePeriodSeconds = new(int64(1)) // 0 would force the deletion
	case asked && pod.DeletionTimestamp == nil && now.Sub(last) >= retryDeleteAfter: // the request was lost
	default:
		return false
	}
	r.stopping[pod.UID] = now
	return true
}

// StateOf returns the state of a start; see [runtime.Namer].
func (r *Runtime) StateOf(project, workspace, generation int64) runtime.State {
	return r.config.ref(runtime.Spec{Project: project, Workspace: workspace, Generation: generation}).state()
}

// AcceptsPods reports whether the cluster has a node of this name that is not cordoned.
func (r *Runtime) AcceptsPods(name string) bool {
	node, err := r.nodeLister.Get(name)
	return err == nil && !node.Spec.Unschedulable
}

// List returns the running workspaces. It deletes pods that ended long ago and were
// not stopped.
func (r *Runtime) List(ctx context.Context) ([]runtime.Instance, error) {
	pods, err := r.podLister.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var all []runtime.Instance
	present := map[types.UID]bool{}
	for _, pod := range pods {
		present[pod.UID] = true
		if r.config.owns(pod) && !podEnded(pod) {
			r.ensureLater(pod)
		}
		id, ok := r.config.refOf(pod)
		switch {
		case !ok:
		case !podEnded(pod):
			all = append(all, runtime.Instance{Workspace: id.Workspace, Generation: id.Generation, State: id.state()})
		case r.isOrphan(pod):
			if err := r.Stop(ctx, id.state()); err != nil {
				return nil, err
			}
		}
	}
	r.pods.retain(present)
	return all, nil
}

// isOrphan reports whether the end of a pod was observed long ago.
func (r *Runtime) isOrphan(pod *corev1.Pod) bool {
	m, now := r.pods.entry(pod.UID), r.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.endedAt.IsZero() {
		m.endedAt = now
	}
	return now.Sub(m.endedAt) >= forgetAfter
}

// foreignName is the name of a pod of a workspace, a run or a part, of any generation.
var foreignName = regexp.MustCompile(`^((ws|part)-\d+-\d+|run-\d+)(-r\d+)?$`)

// Foreign finds the pods of workspaces, runs and parts that run under the labels of this
// installation, but for another owner.
func (r *Runtime) Foreign() ([]models.Foreign, error) {
	pods, err := r.podLister.List(labels.Everything())
	count := map[models.Foreign]int{}
	for _, pod := range pods {
		if _, own := r.config.idOf(pod); !own && !podEnded(pod) && foreignName.MatchString(pod.Name) {
			count[models.Foreign{Owner: pod.Labels[labelOwner], Place: pod.Namespace}]++
		}
	}
	return runtime.CountForeign(count), err
}
