package kube

import (
	"context"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"weir/workspaces/runtime"
)

// Runs runs commands until they end, each in a pod of its own beside those of the workspaces
// of its project: runs, or the parts of deployments. What a run has printed and how it has ended is kept in a directory that
// all servers share: then its pod is deleted.
//
// A signal is sent by a kill that is executed in the pod: it reaches the command as it is,
// at once, and needs neither a port nor a program in the image but a shell. A run is stopped
// in the same way, and its pod is deleted only if that does not help, because a pod takes
// its exit code and its output with it.
type Runs struct {
	cluster *Runtime
	kind    podKind
	dir     string
	runtime.Changes
	ctx    context.Context // of the readers of logs
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	stopping map[types.UID]*stopping
	began    map[types.UID]beginning     // of commands that run
	deleted  map[ref]*corev1.Pod         // as they were last seen
	readers  map[types.UID]*logReader    // of the logs of pods
	ended    map[string]runtime.Instance // by their directory: what it says does not change any more
}

// stopping is how far a stop is.
type stopping struct {
	first time.Time // Stop
	sent  bool      // SIGTERM was received
}

// beginning is the start of a command as this process has first seen it.
type beginning struct {
	ran time.Duration // by the clock of the node
	at  time.Time     // of this process
}

var _ runtime.Parts = (*Runs)(nil)

// NewRuns returns Runs on the cluster of r, which keeps what runs leave in dir: a directory
// of all servers, and of no pod.
func NewRuns(r *Runtime, dir string) (*Runs, error) { return newRuns(r, kindRun, dir) }

// NewParts returns the same for the parts of deployments, in another directory.
func NewParts(r *Runtime, dir string) (*Runs, error) { return newRuns(r, kindPart, dir) }

func newRuns(r *Runtime, k podKind, dir string) (*Runs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	runs := &Runs{cluster: r, kind: k, dir: dir, stopping: map[types.UID]*stopping{}, began: map[types.UID]beginning{},
		deleted: map[ref]*corev1.Pod{}, readers: map[types.UID]*logReader{}, ended: map[string]runtime.Instance{}}
	runs.ctx, runs.cancel = context.WithCancel(context.Background())
	_, err := r.factory.Core().V1().Pods().Informer().AddEventHandler(runs.podHandler())
	return runs, err
}

// Close ends what Runs does in the background. Commands continue to run.
func (r *Runs) Close() error {
	r.cancel()
	r.wg.Wait()
	return nil
}

// podHandler notifies of runs whose pod has changed, and records deleted pods.
func (r *Runs) podHandler() cache.ResourceEventHandler {
	changed := func(object any, gone bool) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return
		}
		if id, ok := r.cluster.config.runOf(r.kind, pod); ok {
			r.mu.Lock()
			if _, polled := r.readers[pod.UID]; gone && polled {
				r.deleted[id] = pod
			}
			r.mu.Unlock()
			r.Changed(id.Workspace)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { changed(object, false) },
		UpdateFunc: func(_, after any) { changed(after, false) },
		DeleteFunc: func(object any) { changed(object, true) },
	}
}
