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
	logPeriod  = 2 * time.Second // between looks at the log of what is starting or stopping
	logTimeout = 3 * time.Second

	eventsAfter  = 5 * time.Second // that a start may be held up before its events are looked at
	eventsPeriod = 10 * time.Second

	masked = "[token]"
)

// memory keeps what was asked of the API server about each pod, so that it is
// asked seldom.
type memory struct {
	mu   sync.Mutex
	pods map[types.UID]*remembered
}

// remembered is what was learnt of one pod beside what the informer brings.
type remembered struct {
	mu      sync.Mutex // held while the API server is asked
	secrets []string   // not to be shown; nil: not known yet
	tail    string
	read    time.Time // when the tail was
	final   bool      // the tail is complete
	well    bool      // the notebook has answered

	events []corev1.Event
	listed time.Time // when the events were

	ended time.Time // when it was first seen to have ended
}

func (m *memory) of(pod types.UID) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[pod]
	if p == nil {
		p = &remembered{}
		m.pods[pod] = p
	}
	return p
}

func (m *memory) forget(pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, pod)
}

// keep forgets all pods but those.
func (m *memory) keep(pods map[types.UID]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.pods, func(pod types.UID, _ *remembered) bool { return !pods[pod] })
}

// tailOf returns the end of a pod's log without its secrets. It is read now
// and then while a notebook that runs does not answer, and once more when it
// has ended; what answers, and is then stopped, has nothing to explain.
func (r *Runtime) tailOf(ctx context.Context, pod *corev1.Pod) string {
	m, s := r.memory.of(pod.UID), containerOf(pod)
	m.mu.Lock()
	defer m.mu.Unlock()
	silent := s.State.Running != nil && !answering(s)
	if silent && m.read.IsZero() {
		m.read = r.now() // it has just begun
	}
	m.well = m.well || answering(s)
	stopped := pod.DeletionTimestamp != nil && m.well
	over := s.State.Terminated != nil && !m.final && !stopped
	if !over && (!silent || r.now().Sub(m.read) < logPeriod) {
		return m.tail
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	m.read = r.now()
	if err := r.readTail(ctx, pod, m); err != nil {
		r.log.DebugContext(ctx, "cannot read a notebook's log", "pod", pod.Name, "namespace", pod.Namespace, "err", err)
		return m.tail
	}
	m.final = s.State.Terminated != nil
	return m.tail
}

func (r *Runtime) readTail(ctx context.Context, pod *corev1.Pod, m *remembered) error {
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
		Container: container, TailLines: &lines, LimitBytes: &bytes}).Stream(ctx)
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
	m.tail = lastLines(string(b), m.secrets)
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

// eventsOf returns what the cluster says of a pod that is held up before its
// container runs, where nothing but events tells why.
func (r *Runtime) eventsOf(ctx context.Context, pod *corev1.Pod) []corev1.Event {
	m := r.memory.of(pod.UID)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := r.now()
	if !waiting(pod) || now.Sub(pod.CreationTimestamp.Time) < eventsAfter || now.Sub(m.listed) < eventsPeriod {
		return m.events
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	m.listed = now
	list, err := r.client.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.uid=" + string(pod.UID), Limit: 50})
	if err != nil {
		r.log.DebugContext(ctx, "cannot list the events of a pod", "pod", pod.Name, "namespace", pod.Namespace, "err", err)
		return m.events
	}
	m.events = list.Items
	return m.events
}
