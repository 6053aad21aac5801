package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	eventsAfter  = 5 * time.Second // from the creation of a pod until its events are read
	eventsPeriod = 10 * time.Second
)

// eventsOf returns the events of a pod whose container has not started for a while:
// only they contain the reason.
func (r *Runtime) eventsOf(ctx context.Context, pod *corev1.Pod) []corev1.Event {
	m := r.pods.entry(pod.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := r.now()
	if !waitsForContainer(pod) || now.Sub(pod.CreationTimestamp.Time) < eventsAfter || now.Sub(m.eventsAt) < eventsPeriod {
		return m.events
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	m.eventsAt = now
	list, err := r.client.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.uid=" + string(pod.UID), Limit: 50})
	if err != nil {
		r.log.DebugContext(ctx, "cannot list the events of a pod", "pod", pod.Name, "namespace", pod.Namespace, "err", err)
		return m.events
	}
	m.events = list.Items
	return m.events
}
