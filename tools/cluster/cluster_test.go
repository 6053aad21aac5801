package cluster

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
)

// start starts a cluster for the test.
func start(t *testing.T, o Options) *Cluster {
	t.Helper()
	o.Log = t.Logf
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// eventually polls until done returns true, for at most readyTimeout.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(readyTimeout); !done(); pause() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %s", what, readyTimeout)
		}
	}
}

func do(t *testing.T, c *Cluster, method, path string, in, out any) {
	t.Helper()
	if err := c.Client().Do(t.Context(), method, path, in, out); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
}

type pod struct {
	Spec   struct{ NodeName string }
	Status struct{ Phase, PodIP string }
}

func podPath(name string) string { return "/api/v1/namespaces/default/pods/" + name }

// waitRunning waits for the pod to run.
func waitRunning(t *testing.T, c *Cluster, name string) (p pod) {
	t.Helper()
	eventually(t, name+" runs", func() bool {
		p = pod{}
		do(t, c, http.MethodGet, podPath(name), nil, &p)
		return p.Status.Phase == "Running" && p.Status.PodIP != ""
	})
	return p
}

// leftProcesses lists the processes with the directory in their command line.
func leftProcesses(t *testing.T, dir string) (left []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), dir) {
			left = append(left, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return left
}

// checkGone checks that Stop has removed everything that every cluster has.
func checkGone(t *testing.T, dir string) {
	t.Helper()
	if left := leftProcesses(t, dir); len(left) > 0 {
		t.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}

// The control plane needs no root. Pods are scheduled on simulated nodes.
func TestControlPlane(t *testing.T) {
	c := start(t, Options{ControlPlaneOnly: true, Simulated: 2})
	if c.Node != "" {
		t.Errorf("there is a node %q", c.Node)
	}
	do(t, c, http.MethodPost, "/api/v1/namespaces/default/pods", map[string]any{
		"metadata": map[string]any{"name": "p"},
		"spec": map[string]any{
			"tolerations": []any{map[string]any{"key": SimulatedKey, "operator": "Exists"}},
			"containers": []any{map[string]any{"name": "p", "image": "none",
				"resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "8"}}}},
		},
	}, nil)
	if p := waitRunning(t, c, "p"); !strings.HasPrefix(p.Spec.NodeName, "simulated-") {
		t.Errorf("the pod is on %q", p.Spec.NodeName)
	}
	if _, err := Start(t.Context(), Options{Dir: c.Dir(), ControlPlaneOnly: true}); err == nil || !strings.Contains(err.Error(), "cluster-down") {
		t.Errorf("a second cluster in the same directory: %v", err)
	}
	if path, ok := Running(c.Dir()); !ok || path != c.Kubeconfig {
		t.Errorf("it does not count as running: %q, %t", path, ok)
	}
	if len(leftProcesses(t, c.Dir())) == 0 {
		t.Error("no process names the directory: the check for those that are left would see nothing")
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	checkGone(t, c.Dir())
	if _, ok := Running(c.Dir()); ok {
		t.Error("it counts as running")
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stopping again: %v", err)
	}
}

// A client needs a certificate of the cluster.
func TestStrangersAreRefused(t *testing.T) {
	c := start(t, Options{ControlPlaneOnly: true})
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	clear(config.AuthInfos)
	config.Contexts["weir"].AuthInfo = ""
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	stranger, err := newClient(path)
	if err != nil {
		t.Fatal(err)
	}
	err = stranger.Do(t.Context(), http.MethodGet, "/api/v1/namespaces", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "system:anonymous") {
		t.Errorf("without a certificate: %v", err)
	}
	if err := c.api.Do(t.Context(), http.MethodGet, podPath("none"), nil, nil); !apierrors.IsNotFound(err) {
		t.Errorf("as an administrator: %v", err)
	}
}

// Sweep removes clusters of killed processes, and no others.
func TestSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c := start(t, Options{ControlPlaneOnly: true})
	if err := Sweep(); err != nil {
		t.Fatal(err)
	}
	do(t, c, http.MethodGet, "/readyz", nil, nil)

	dead := endedProcess(t)
	if err := os.WriteFile(filepath.Join(c.Dir(), marker), []byte(dead.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(); err != nil {
		t.Fatal(err)
	}
	checkGone(t, c.Dir())
}

// endedProcess returns the record of a process that has ended.
func endedProcess(t *testing.T) record {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r, ok := recordOf(cmd.Process.Pid)
	if !ok || !r.alive() {
		t.Fatalf("%v does not count as alive", r)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return r
}

// An existing cluster is used in place of a new one, and is not stopped.
func TestOpenTakesWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte("apiVersion: v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	t.Setenv(ExternalImage, "registry.example/jupyter:1")
	c, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Kubeconfig != path || c.Image != "registry.example/jupyter:1" || c.Client() != nil {
		t.Errorf("%+v", c)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if err := c.Import("x.tar"); err == nil {
		t.Error("an image was imported into a cluster that is not ours")
	}
	t.Setenv("KUBECONFIG", path+"-none")
	if _, err := Open(t.Context(), Options{}); err == nil {
		t.Error("a KUBECONFIG that does not exist was accepted")
	}
}

// A cancelled start leaves nothing.
func TestCancelledStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	log := func(format string, args ...any) {
		if strings.Contains(format, "answers") {
			cancel()
		}
	}
	c, err := Start(ctx, Options{ControlPlaneOnly: true, Log: log})
	if err == nil {
		t.Fatal(c.Stop(), "it started")
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), temporary+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left := leftProcesses(t, os.TempDir()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
