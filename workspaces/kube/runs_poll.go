package kube

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir/models"
	"weir/workspaces/runtime"
)

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
