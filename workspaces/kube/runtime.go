package kube

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"

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

// Close ends what this Runtime does in the background. Workspaces continue to run.
func (r *Runtime) Close() error {
	r.cancel()
	r.factory.Shutdown()
	r.nodeFactory.Shutdown()
	r.wg.Wait()
	return nil
}

// Describe implements prometheus.Collector.
func (r *Runtime) Describe(ch chan<- *prometheus.Desc) { r.requests.Describe(ch) }

// Collect implements prometheus.Collector.
func (r *Runtime) Collect(ch chan<- prometheus.Metric) { r.requests.Collect(ch) }

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
