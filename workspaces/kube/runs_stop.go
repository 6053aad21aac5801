package kube

import (
	"context"
	"syscall"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir/models"
	"weir/workspaces/runtime"
)

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
