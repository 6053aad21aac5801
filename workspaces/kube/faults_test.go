package kube

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"weir/models"
	"weir/workspaces/runtime"
)

// server is an API server that accepts what is applied, and writes down what kind it is.
type server struct {
	*Runtime
	url                               string
	pods, namespaces, volumes, claims cache.Indexer // what the informers have
	now                               time.Time
	refused                           string // a kind
	unbound                           bool   // claims stay
	applied                           []string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{now: time.Now()}
	for _, i := range []*cache.Indexer{&s.pods, &s.namespaces, &s.volumes, &s.claims} {
		*i = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	}
	api := httptest.NewServer(s)
	t.Cleanup(api.Close)
	s.url = api.URL
	s.restart(t)
	return s
}

// restart replaces the Runtime by one that has done nothing yet.
func (s *server) restart(t *testing.T) {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.url, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	s.Runtime = &Runtime{config: config(t, nil), client: client, log: slog.New(slog.DiscardHandler), now: func() time.Time { return s.now },
		unreachable: &atomic.Bool{}, projects: projects{drifted: make(chan int64, 64)},
		podLister: corelisters.NewPodLister(s.pods), namespaceLister: corelisters.NewNamespaceLister(s.namespaces),
		volumeLister: corelisters.NewPersistentVolumeLister(s.volumes), claimLister: corelisters.NewPersistentVolumeClaimLister(s.claims),
		stopping: map[types.UID]time.Time{}, deleted: map[ref]lastStatus{}, labels: map[ref]map[string]string{}}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var sent struct{ Kind string }
	switch {
	case strings.HasSuffix(r.URL.Path, "/log"):
		_, _ = io.WriteString(w, "2026-01-02T03:04:05Z hello\n")
		return
	case r.Method == http.MethodDelete:
		body = []byte("{}")
	case r.Method != http.MethodPatch || json.Unmarshal(body, &sent) != nil:
		w.WriteHeader(http.StatusNotFound)
		return
	case sent.Kind == s.refused:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	default:
		s.applied = append(s.applied, sent.Kind)
		var v corev1.PersistentVolume
		if sent.Kind == "PersistentVolume" && json.Unmarshal(body, &v) == nil { // as the volume controller does
			v.Status.Phase = corev1.VolumeAvailable
			_ = s.volumes.Add(&v)
		}
		var c corev1.PersistentVolumeClaim
		if sent.Kind == "PersistentVolumeClaim" && !s.unbound && json.Unmarshal(body, &c) == nil { // as well
			c.Status.Phase = corev1.ClaimBound
			_ = s.claims.Add(&c)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// has gives the informers a pod.
func (s *server) has(t *testing.T, name string, labels map[string]string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := seen(change)
	pod.Name, pod.UID, pod.Labels, pod.CreationTimestamp = name, types.UID(name), labels, metav1.NewTime(s.now)
	if err := s.pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// repaired lists what runs twice, repairs what is found, and returns the kinds that are applied for it.
func (s *server) repaired(t *testing.T) string {
	t.Helper()
	for range 2 {
		if _, err := s.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.projects.drifted); n > 1 {
		t.Errorf("one project waits %d times", n)
	}
	s.applied = nil
	for len(s.projects.drifted) > 0 {
		s.repairProject(t.Context(), <-s.projects.drifted)
	}
	return strings.Join(slices.Compact(s.applied), " ")
}

// After a start of the server, the objects of a project in which something runs are applied once; after a failure, the
// rest of them; and again when others change one.
func TestObjectsAfterARestart(t *testing.T) {
	s := newServer(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.config.namespace(7)}}
	if err := s.namespaces.Add(ns); err != nil {
		t.Fatal(err)
	}
	const before, after = "PersistentVolume Namespace ResourceQuota LimitRange", "NetworkPolicy ConfigMap PersistentVolumeClaim"
	labels := s.config.workspaceLabels(spec())
	s.has(t, "ws-5-2", labels, exits(0, "Completed"))
	if got := s.repaired(t); got != "" {
		t.Errorf("where nothing runs, %s is applied", got)
	}
	s.has(t, "run-3", s.config.runLabels(kindRun, spec()), runs(true))
	s.refused = "NetworkPolicy"
	if got := s.repaired(t); got != before {
		t.Errorf("%s is applied before the failure", got)
	}
	s.refused = ""
	for i, want := range []string{after, ""} {
		if got := s.repaired(t); got != want {
			t.Errorf("%s is applied %d calls after the failure", got, i+1)
		}
	}
	s.checkDrift(&netv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default-deny", Namespace: ns.Name, Labels: labels}}, true)
	for i, want := range []string{before + " " + after, ""} {
		if got := s.repaired(t); got != want {
			t.Errorf("%s is applied %d calls after a policy was deleted", got, i+1)
		}
	}
	s.restart(t)
	if got := s.repaired(t); got != before+" "+after {
		t.Errorf("%s is applied after a restart", got)
	}
	s.restart(t)
	ns.DeletionTimestamp = &metav1.Time{Time: s.now}
	if got := s.repaired(t); got != "" {
		t.Errorf("%s is applied to a namespace that is being deleted", got)
	}
}

// No pod is created before the claims of its project are bound: the scheduler could leave it for minutes.
func TestPodsWaitForClaims(t *testing.T) {
	s := newServer(t)
	s.unbound = true
	_, err := s.Start(t.Context(), spec())
	if models.KindOf(err) != models.KindUnavailable || !strings.Contains(err.Error(), "not bound yet") || slices.Contains(s.applied, "Pod") {
		t.Errorf("%v; applied: %v", err, s.applied)
	}
	for _, c := range []string{"deployments", "project", "public-algorithm", "public-dataset", "public-model"} {
		name := s.config.claimOf(Directory{Name: c})
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.config.namespace(7), Name: name}}
		claim.Status.Phase = corev1.ClaimBound
		if err := s.claims.Add(claim); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ensureProject(t.Context(), 7); err != nil {
		t.Error(err)
	}
}

// fullDisk is a directory on a file system that fill fills, and the function that it returns empties.
func fullDisk(t *testing.T) (dir string, fill func() (empty func())) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir, func() func() {
		filler := filepath.Join(dir, ".filler")
		if err := os.WriteFile(filler, make([]byte, 128<<10), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
		return func() {
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// While the shared storage is full, a run that has ended counts as ended, so that its shares go back: its pod stays until
// its end can be written down, or for a while.
func TestRunsEndWhileTheStorageIsFull(t *testing.T) {
	s := newServer(t)
	dir, fill := fullDisk(t)
	r := &Runs{cluster: s.Runtime, kind: kindRun, dir: dir, stopping: map[types.UID]*stopping{}, began: map[types.UID]beginning{},
		deleted: map[ref]*corev1.Pod{}, readers: map[types.UID]*logReader{}, ended: map[string]runtime.Instance{}}
	r.ctx, r.cancel = context.WithCancel(t.Context())
	t.Cleanup(func() { r.Close() })
	var states []runtime.State
	for id, name := range map[int64]string{3: "run-3", 4: "run-4"} {
		states = append(states, r.made(t, id, map[string]any{stateFile: nil, cursorFile: cursor{}}).state())
		s.has(t, name, s.config.runLabels(kindRun, runtime.Spec{Project: 7, Workspace: id}), exits(3, "Error"))
	}
	empty := fill()
	polled := func(state runtime.State, ended bool) {
		t.Helper()
		if status, err := r.Poll(t.Context(), state); err != nil || status.Ended != ended || ended && status.ExitCode != 3 {
			t.Errorf("%+v, %v; it has ended: %t", status, err, ended)
		}
	}
	for _, state := range states {
		polled(state, false) // its output is read
	}
	s.now = s.now.Add(logPatience)
	for _, state := range states {
		polled(state, true)
	}
	if list := r.listed(t); len(list) != 2 || !list[0].Ended || !list[1].Ended || len(s.Runtime.stopping) != 0 {
		t.Errorf("%+v are listed, %v are deleted; nothing is written down yet", list, s.Runtime.stopping)
	}
	empty()
	polled(states[0], true)
	if len(s.Runtime.stopping) != 1 {
		t.Errorf("%v are deleted; the end of the first is written down", s.Runtime.stopping)
	}
	fill()
	s.now = s.now.Add(forgetAfter)
	r.listed(t)
	if len(s.Runtime.stopping) != 2 {
		t.Errorf("%v are deleted; the other one has ended long ago", s.Runtime.stopping)
	}
}

// While the API server does not respond, what is known is told. What may have changed meanwhile, and a start, are errors
// that a retry can mend.
func TestUnreachableCluster(t *testing.T) {
	s := newServer(t)
	s.has(t, "ws-1-1", s.config.workspaceLabels(spec()), inUse("ContainerCreating", ""))
	s.has(t, "ws-2-1", s.config.workspaceLabels(spec()), runs(false))
	s.has(t, "ws-3-1", s.config.workspaceLabels(spec()), runs(true))
	s.has(t, "ws-4-1", s.config.workspaceLabels(spec()), exits(3, "Error"))
	polled := func(workspace int64, phase runtime.Phase, kind models.Kind) {
		t.Helper()
		status, err := s.Poll(t.Context(), s.StateOf(7, workspace, 1))
		if status.Phase != phase || models.KindOf(err) != kind {
			t.Errorf("workspace %d is %s, %v", workspace, status.Phase, err)
		}
	}
	s.url = "http://127.0.0.1:1" // where nothing listens
	s.restart(t)
	polled(1, runtime.PhaseStarting, "")
	s.unreachable.Store(true)
	polled(1, "", models.KindUnavailable)
	polled(2, "", models.KindUnavailable)
	polled(3, runtime.PhaseRunning, "")
	polled(4, runtime.PhaseExited, "")
	polled(5, "", models.KindUnavailable)
	if state, err := s.Start(t.Context(), spec()); state != nil || models.KindOf(err) != models.KindUnavailable {
		t.Errorf("a start: %s, %v", state, err)
	}
}
