package kube

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"weir/workspaces/runtime"
)

// withoutPods returns Runs of a cluster without pods.
func withoutPods(t *testing.T) *Runs {
	return &Runs{kind: kindRun, dir: t.TempDir(), ended: map[string]runtime.Instance{}, cluster: &Runtime{config: Config{Prefix: "weir-p-"},
		podLister: corelisters.NewPodLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}))}}
}

func (r *Runs) made(t *testing.T, id int64, files map[string]any) ref {
	run := r.cluster.config.runRef(r.kind, runtime.Spec{Workspace: id, Project: 7})
	err := os.Mkdir(r.path(run), 0o700)
	for name, value := range files {
		if value == nil {
			value = run
		}
		err = errors.Join(err, r.write(run, name, value))
	}
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func (r *Runs) listed(t *testing.T) []runtime.Instance {
	list, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// What an ended run has left is listed until it is removed, and is read once.
func TestEndedRunIsReadOnce(t *testing.T) {
	r := withoutPods(t)
	run := r.made(t, 3, map[string]any{stateFile: nil, resultFile: runtime.RunStatus{Ended: true}})
	for range 2 {
		if list := r.listed(t); len(list) != 1 || list[0].Workspace != 3 || !list[0].Ended || string(list[0].State) != string(run.state()) {
			t.Fatalf("%+v are listed; want the run", list)
		}
		_ = os.Remove(filepath.Join(r.path(run), stateFile)) // a second reading would find no run
	}
	if err := os.RemoveAll(r.path(run)); err != nil {
		t.Fatal(err)
	}
	if list := r.listed(t); len(list) != 0 || len(r.ended) != 0 {
		t.Errorf("%+v are listed, %d are known; the directory is removed", list, len(r.ended))
	}
}

// A run of which there is neither a result nor a pod, as one that ended while the storage was full, is looked up once.
func TestRunWithoutAPodIsLookedUpOnce(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	r := withoutPods(t)
	r.cluster.client = kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
	r.made(t, 3, map[string]any{stateFile: nil})
	for range 3 {
		if list := r.listed(t); len(list) != 1 || list[0].Workspace != 3 || !list[0].Ended {
			t.Fatalf("%+v are listed; want the run", list)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the cluster is asked %d times", n)
	}
}

// A start makes its directory before it writes what it starts: only the directory of an interrupted one is removed.
func TestDirectoryOfAStartIsNotRemoved(t *testing.T) {
	r := withoutPods(t)
	starting, interrupted := r.made(t, 4, nil), r.made(t, 5, nil)
	long := time.Now().Add(-2 * startTimeout)
	if err := os.Chtimes(r.path(interrupted), long, long); err != nil {
		t.Fatal(err)
	}
	if list := r.listed(t); len(list) != 0 {
		t.Errorf("%+v are listed; nothing is started", list)
	}
	if _, err := os.Stat(r.path(starting)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(r.path(interrupted)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the directory of an interrupted start remains")
	}
}

// The command of a run begins in its directory, whatever its name has for Kubernetes or a shell.
func TestDirectoryOfARun(t *testing.T) {
	s := spec()
	s.Command, s.Directory = []string{"pwd"}, "/notebook/7/$(HOME) $x"
	applied, err := config(t, nil).runPodObject(kindRun, s)
	if err != nil {
		t.Fatal(err)
	}
	command := as[corev1.Pod](t, applied).Spec.Containers[0].Command
	for i := range command {
		command[i] = expand(command[i])
	}
	if want := runtime.RunCommand(record, s.Directory, s.Command); !slices.Equal(command, want) {
		t.Errorf("it executes %q, not %q", command, want)
	}
}
