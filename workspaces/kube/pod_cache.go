package kube

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	logTail    = 4 << 10   // bytes that people see
	logRead    = 256 << 10 // bytes that are read of the last lines
	logLines   = 200
	logPeriod  = 2 * time.Second // between two reads of the log of what is starting or stopping
	logTimeout = 3 * time.Second

	eventsAfter  = 5 * time.Second // of a start before its events are read
	eventsPeriod = 10 * time.Second

	masked = "[token]"
)

// podCache keeps what was read from the API server of each pod.
type podCache struct {
	mu   sync.Mutex
	pods map[types.UID]*cachedPod
}

// cachedPod is what is known of one pod beside what the informer brings.
type cachedPod struct {
	mu       sync.Mutex // held during requests to the API server
	secrets  []string   // not to be shown; nil: not known yet
	logTail  string
	readAt   time.Time // when the tail was
	complete bool      // the tail is complete
	answered bool      // the notebook has answered

	events   []corev1.Event
	eventsAt time.Time // when the events were

	endedAt time.Time // when it was first seen to have ended
}

func (m *podCache) entry(pod types.UID) *cachedPod {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[pod]
	if p == nil {
		p = &cachedPod{}
		m.pods[pod] = p
	}
	return p
}

func (m *podCache) forget(pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, pod)
}

// retain forgets all pods but those.
func (m *podCache) retain(pods map[types.UID]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.pods, func(pod types.UID, _ *cachedPod) bool { return !pods[pod] })
}

// logTailOf returns the end of a pod's log without its secrets. It is read now
// and then while a notebook that runs does not answer, and once more when it
// has ended; one that answered and was then stopped needs no log.
func (r *Runtime) logTailOf(ctx context.Context, pod *corev1.Pod) string {
	m, s := r.pods.entry(pod.UID), containerOf(pod)
	m.mu.Lock()
	defer m.mu.Unlock()
	silent := s.State.Running != nil && !answering(s)
	if silent && m.readAt.IsZero() {
		m.readAt = r.now() // it has just begun
	}
	m.answered = m.answered || answering(s)
	stopped := pod.DeletionTimestamp != nil && m.answered
	over := s.State.Terminated != nil && !m.complete && !stopped
	if !over && (!silent || r.now().Sub(m.readAt) < logPeriod) {
		return m.logTail
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	m.readAt = r.now()
	if err := r.readTail(ctx, pod, m); err != nil {
		r.log.DebugContext(ctx, "cannot read a notebook's log", "pod", pod.Name, "namespace", pod.Namespace, "err", err)
		return m.logTail
	}
	m.complete = s.State.Terminated != nil
	return m.logTail
}

func (r *Runtime) readTail(ctx context.Context, pod *corev1.Pod, m *cachedPod) error {
	if m.secrets == nil { // started by an earlier process
		secret, err := r.client.CoreV1().Secrets(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err // what cannot be masked is not shown
		}
		env := map[string]string{}
		for name, value := range secret.Data {
			env[name] = string(value)
		}
		m.secrets = secretsOf(env)
	}
	lines, bytes := int64(logLines), int64(logRead)
	stream, err := r.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: containerName, TailLines: &lines, LimitBytes: &bytes}).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	b, err := io.ReadAll(io.LimitReader(stream, logRead))
	if err != nil {
		return err
	}
	if len(b) == logRead { // cut, perhaps within a secret
		b = b[:strings.LastIndexByte(string(b), '\n')+1]
	}
	m.logTail = lastLines(string(b), m.secrets)
	return nil
}

// secretsOf are the values of an environment that a log must not show, longer
// ones first, for one may hold another.
func secretsOf(env map[string]string) []string {
	all := []string{}
	for name, value := range env {
		if strings.Contains(name, "TOKEN") && len(value) >= 8 {
			all = append(all, value)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// lastLines is the end of a log, whole lines if it can, without the secrets.
func lastLines(log string, secrets []string) string {
	s := strings.ToValidUTF8(log, "\uFFFD")
	for _, secret := range secrets {
		s = strings.ReplaceAll(s, secret, masked)
	}
	if len(s) <= logTail {
		return s
	}
	s = s[len(s)-logTail:]
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[i+1:]
	}
	return strings.ToValidUTF8(s, "")
}

// eventsOf returns the events of a pod whose container does not run yet, where
// nothing else says why.
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
