package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir/models"
	"weir/workspaces/runtime"
)

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
