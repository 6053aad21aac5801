package kube

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir/workspaces/runtime"
)

const (
	logRead    = 256 << 10 // maximum of bytes that are read of the last lines
	logLines   = 200
	logPeriod  = 2 * time.Second // between two reads of a log
	logTimeout = 3 * time.Second
)

// logTailOf returns the end of a pod's log, with the secrets masked. It reads the
// log periodically while a running notebook does not respond, and once after its
// end unless it had responded before it was stopped.
func (r *Runtime) logTailOf(ctx context.Context, pod *corev1.Pod) string {
	m, s := r.pods.entry(pod.UID), containerOf(pod)
	m.mu.Lock()
	defer m.mu.Unlock()
	silent := s.State.Running != nil && !containerReady(s)
	if silent && m.readAt.IsZero() {
		m.readAt = r.now() // it has just started
	}
	m.answered = m.answered || containerReady(s)
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

// readSecrets reads the secrets of a pod, which an earlier process may have started: its log may
// only be shown with them masked.
func (r *Runtime) readSecrets(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	secret, err := r.client.CoreV1().Secrets(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for name, value := range secret.Data {
		env[name] = string(value)
	}
	return secretsOf(env), nil
}

func (r *Runtime) readTail(ctx context.Context, pod *corev1.Pod, m *cachedPod) error {
	if m.secrets == nil {
		secrets, err := r.readSecrets(ctx, pod)
		if err != nil {
			return err
		}
		m.secrets = secrets
	}
	log, err := r.readLog(ctx, pod)
	if err == nil {
		m.logTail = runtime.LogTail(log, m.secrets...)
	}
	return err
}

// readLog returns the last lines of a pod's log, in whole lines, because the rest of one could
// show a part of a secret.
func (r *Runtime) readLog(ctx context.Context, pod *corev1.Pod) (string, error) {
	lines, bytes := int64(logLines), int64(logRead)
	stream, err := r.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: containerName, TailLines: &lines, LimitBytes: &bytes}).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	b, err := io.ReadAll(io.LimitReader(stream, logRead))
	if len(b) == logRead {
		b = b[:strings.LastIndexByte(string(b), '\n')+1]
	}
	return string(b), err
}

// Log returns the last lines of a workspace; see [runtime.Runtime].
func (r *Runtime) Log(ctx context.Context, state runtime.State) (string, error) {
	id, err := parseState(state)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	pod, err := r.find(ctx, id)
	if err != nil || pod == nil {
		return "", err
	}
	m := r.pods.entry(pod.UID)
	m.mu.Lock()
	secrets := m.secrets
	m.mu.Unlock() // reading from a dead node takes long, and all other polls of the pod would wait
	if secrets == nil {
		if secrets, err = r.readSecrets(ctx, pod); err != nil {
			return "", refusal(err)
		}
	}
	log, err := r.readLog(ctx, pod)
	if err != nil {
		return "", refusal(err)
	}
	return runtime.LogEnd(runtime.MaxLog, log, secrets...), nil
}

// secretsOf returns the values of an environment that a log must not show. Longer
// ones are first, because they may contain others.
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
