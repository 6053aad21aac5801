package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"weir/models"
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

// Start starts a command in a pod; see [runtime.Runs]. It returns when the pod is created.
func (r *Runs) Start(ctx context.Context, run int64, spec runtime.Spec, command []string) (runtime.State, error) {
	if run <= 0 || len(command) == 0 {
		return nil, errors.New("a run needs a positive id and a command")
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	spec.Workspace, spec.Command, spec.Token = run, command, ""
	id := r.cluster.config.runRef(r.kind, spec)
	if _, err := r.cursor(id); err == nil {
		return id.state(), nil
	}
	object, err := r.cluster.config.runPodObject(r.kind, spec)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(r.path(id), 0o700), r.write(id, stateFile, id)); err != nil {
		return nil, models.Unavailable(err, "The shared storage is not available.")
	}
	pod, uncertain, err := r.cluster.createPod(ctx, id, spec.Project, object)
	if uncertain {
		return id.state(), refusal(err)
	}
	if err != nil {
		return nil, refusal(err)
	}
	models.Failpoint("kube.pod")
	if err := r.cluster.applyWaited(ctx, pod, r.cluster.config.runObjects(r.kind, spec, pod)); err != nil {
		return id.state(), refusal(err)
	}
	if err := r.write(id, cursorFile, cursor{}); err != nil {
		return id.state(), models.Unavailable(err, "The shared storage is not available.")
	}
	return id.state(), nil
}

// Poll returns the status of a run; see [runtime.Runs]. A run has ended when all of its
// output is kept, as far as the cluster has it.
func (r *Runs) Poll(ctx context.Context, state runtime.State) (runtime.RunStatus, error) {
	id, err := parseState(state)
	if err != nil {
		return runtime.RunStatus{}, err
	}
	if s, err := r.result(id); !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	pod, err := r.cluster.find(ctx, id)
	if err != nil {
		return runtime.RunStatus{}, err
	}
	if pod == nil || podEnded(pod) && r.logComplete(id, pod) {
		return r.conclude(ctx, id, pod)
	}
	status := runtime.RunStatus{ExitCode: -1, Limits: limitsOf(pod), Printed: logFiles(r.path(id)).size()}
	switch c := containerOf(pod); {
	case podEnded(pod): // the rest of its output is being read
	case c.State.Running != nil:
		r.follow(id, pod)
		status.Ran = r.ran(pod.UID, c.State.Running.StartedAt.Time)
	default:
		status.Stage, _, status.Message = startOf(pod, c, r.cluster.eventsOf(ctx, pod))
	}
	return status, nil
}

// ran is how long a command has run: by the clocks of the node and this process when it was
// first seen, and from then on by one that nobody sets.
func (r *Runs) ran(pod types.UID, started time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.began[pod]
	if !ok {
		now := time.Now()
		b = beginning{ran: max(now.Sub(started), 0), at: now}
		r.began[pod] = b
	}
	return b.ran + time.Since(b.at)
}

// conclude records how a run has ended, and deletes its pod. Without a pod, that is how it
// was last seen.
func (r *Runs) conclude(ctx context.Context, id ref, pod *corev1.Pod) (runtime.RunStatus, error) {
	r.mu.Lock()
	seen := pod
	if seen == nil {
		seen = r.deleted[id]
	}
	r.mu.Unlock()
	status := endOfRun(seen)
	status.Printed = logFiles(r.path(id)).size()
	if err := errors.Join(os.MkdirAll(r.path(id), 0o700), r.write(id, resultFile, status)); err != nil {
		// The end counts nevertheless, as where the storage is full: its shares go back. List deletes the pod.
		r.cluster.log.WarnContext(ctx, "cannot write down how a run has ended", "pod", id.Pod, "namespace", id.Namespace, "err", err)
		return status, nil
	}
	models.Failpoint("kube.result")
	r.forget(id, seen)
	if pod == nil {
		return status, nil
	}
	err := r.cluster.deletePod(ctx, pod)
	if err != nil { // List repeats it
		r.cluster.log.WarnContext(ctx, "cannot delete the pod of a run that has ended", "pod", pod.Name, "namespace", pod.Namespace, "err", err)
	}
	return status, nil
}

// forget forgets what is known of the pod of a run that has ended.
func (r *Runs) forget(id ref, pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.deleted, id)
	if pod == nil {
		return
	}
	if reader, ok := r.readers[pod.UID]; ok {
		reader.cancel()
	}
	delete(r.readers, pod.UID)
	delete(r.stopping, pod.UID)
	delete(r.began, pod.UID)
}

// Signal sends a signal to the command of a run; see [runtime.Runs].
func (r *Runs) Signal(ctx context.Context, state runtime.State, sig syscall.Signal) (bool, error) {
	id, err := parseState(state)
	if err != nil {
		return false, err
	}
	pod, err := r.cluster.find(ctx, id)
	if err != nil || pod == nil || podEnded(pod) || containerOf(pod).State.Running == nil {
		return false, err
	}
	delivered, err := r.cluster.exec(ctx, pod, "/bin/sh", "-c", `kill -s "$1" "$(cat "$2")"`, "sh", unix.SignalName(sig)[len("SIG"):], pidFile)
	if err == nil {
		return delivered, nil
	}
	if now, missing := r.cluster.client.CoreV1().Pods(id.Namespace).Get(ctx, id.Pod, metav1.GetOptions{}); missing == nil && podEnded(now) {
		return false, nil
	}
	return false, models.Unavailable(err, "The cluster could not send the signal.")
}

// Stop sends SIGTERM to a run, SIGKILL after the grace period of pods, and deletes its pod
// after another one, or if its command does not run yet. It does not wait: call it again
// until Poll says that the run has ended.
func (r *Runs) Stop(ctx context.Context, state runtime.State) error {
	id, err := parseState(state)
	if err != nil {
		return err
	}
	pod, err := r.cluster.find(ctx, id)
	if err != nil || pod == nil || podEnded(pod) {
		return err
	}
	if containerOf(pod).State.Running == nil {
		return r.cluster.deletePod(ctx, pod)
	}
	now := r.cluster.now()
	r.mu.Lock()
	if r.stopping[pod.UID] == nil {
		r.stopping[pod.UID] = &stopping{first: now}
	}
	s := *r.stopping[pod.UID]
	r.mu.Unlock()
	switch waited := now.Sub(s.first); {
	case waited >= 2*r.cluster.config.Grace:
		return r.cluster.deletePod(ctx, pod)
	case waited >= r.cluster.config.Grace:
		_, err = r.Signal(ctx, state, unix.SIGKILL)
	case !s.sent:
		s.sent, err = r.Signal(ctx, state, unix.SIGTERM)
		r.mu.Lock()
		r.stopping[pod.UID] = &s
		r.mu.Unlock()
	}
	if err != nil { // it is repeated, and then the pod is deleted
		r.cluster.log.WarnContext(ctx, "cannot send a signal to a run", "pod", pod.Name, "namespace", pod.Namespace, "err", err)
	}
	return nil
}

// dialTimeout bounds a connection to a pod whose node may be gone.
const dialTimeout = 5 * time.Second

// Address is where the command of a part has to listen; see [runtime.Parts].
func (r *Runs) Address() string { return fmt.Sprintf(":%d", notebookPort) }

// Dial connects to the command of a part; see [runtime.Parts].
func (r *Runs) Dial(ctx context.Context, state runtime.State) (net.Conn, error) {
	id, err := parseState(state)
	if err != nil {
		return nil, err
	}
	pod, err := r.cluster.find(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case pod == nil || podEnded(pod) || pod.Status.PodIP == "":
		return nil, fmt.Errorf("the pod %s is not running", id.Pod)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(notebookPort)))
}

// Remove deletes what is left of a run that has ended; see [runtime.Runs].
func (r *Runs) Remove(ctx context.Context, state runtime.State) error {
	id, err := parseState(state)
	if err != nil {
		return err
	}
	pod, err := r.cluster.find(ctx, id)
	if err != nil {
		return err
	}
	if pod != nil {
		if _, err := r.result(id); err != nil && !podEnded(pod) {
			return models.Conflict("The run has not ended.")
		}
		if err := r.cluster.deletePod(ctx, pod); err != nil {
			return err
		}
	}
	r.forget(id, pod)
	return os.RemoveAll(r.path(id))
}

// List returns the runs that have a pod or have left something; see [runtime.Runs]. It
// deletes pods of which the end is recorded, or was long ago.
func (r *Runs) List(ctx context.Context) ([]runtime.Instance, error) {
	pods, err := r.cluster.podLister.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var all []runtime.Instance
	var failed []error
	present := map[string]bool{}
	for _, pod := range pods {
		id, ok := r.cluster.config.runOf(r.kind, pod)
		if !ok {
			continue
		}
		present[id.Pod] = true
		_, err := r.result(id)
		if err == nil || podEnded(pod) && r.cluster.isOrphan(pod) {
			failed = append(failed, r.cluster.deletePod(ctx, pod))
		}
		all = append(all, runtime.Instance{Workspace: id.Workspace, Generation: id.Generation, State: id.state(),
			Ended: err == nil || podEnded(pod)})
	}
	left, err := r.leftovers(ctx, present)
	return append(all, left...), errors.Join(append(failed, err)...)
}

// leftovers are the runs of directories whose pods the informer does not have. Those with a result, or without any pod,
// are read once: the directory is shared, and keeps runs long after their end.
func (r *Runs) leftovers(ctx context.Context, present map[string]bool) (all []runtime.Instance, err error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	known := r.ended
	r.mu.Unlock()
	ended := map[string]runtime.Instance{}
	var failed []error
	for _, e := range entries {
		if _, own := r.cluster.config.runNamed(r.kind, e.Name()); !own || present[e.Name()] {
			continue
		}
		left, final := known[e.Name()]
		if !final {
			left, final, err = r.leftover(ctx, e)
			failed = append(failed, err)
		}
		if final {
			ended[e.Name()] = left
		}
		if left.State != nil {
			all = append(all, left)
		}
	}
	r.mu.Lock()
	r.ended = ended
	r.mu.Unlock()
	return all, errors.Join(failed...)
}

// leftover is the run of a directory whose pod the informer does not have. It is final when the
// directory has its result, or the cluster has no pod: one that is made later, the informer will have.
func (r *Runs) leftover(ctx context.Context, dir fs.DirEntry) (in runtime.Instance, final bool, err error) {
	id, err := readJSON[ref](filepath.Join(r.dir, dir.Name(), stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return in, false, r.removeUnstarted(dir)
	}
	if err != nil {
		return in, false, err
	}
	in = runtime.Instance{Workspace: id.Workspace, Generation: id.Generation, State: id.state(), Ended: true}
	if _, err := r.result(id); err == nil {
		return in, true, nil
	}
	pod, err := r.cluster.find(ctx, id)
	in.Ended = err == nil && (pod == nil || podEnded(pod))
	return in, err == nil && pod == nil, err
}

// removeUnstarted removes the directory of a run whose start was interrupted before anything was
// made; not one that is being started.
func (r *Runs) removeUnstarted(dir fs.DirEntry) error {
	info, err := dir.Info()
	if err == nil && time.Since(info.ModTime()) > startTimeout {
		err = os.RemoveAll(filepath.Join(r.dir, dir.Name()))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another server has removed it
	}
	return err
}
