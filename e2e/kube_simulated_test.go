//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"weir/tools/cluster"
	"weir/tools/cluster/faults"
)

// simulatedStorage is a directory that nobody mounts.
const simulatedStorage = "/srv/weir"

// simulatedCluster is a real control plane whose nodes only say that they run
// pods, so that many servers can be tried on it at once.
type simulatedCluster struct {
	*cluster.Cluster
	admin *kubernetes.Clientset
	used  atomic.Int64 // nodes
}

func newSimulatedCluster(t *testing.T, nodes int) *simulatedCluster {
	t.Helper()
	k, config := openCluster(t, cluster.Start, cluster.Options{ControlPlaneOnly: true, Simulated: nodes})
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &simulatedCluster{Cluster: k, admin: admin}
}

// faultyPortal is one portal on a simulated cluster, with a node of its own that
// lends eight GPUs, and one member. Its way to the API server leads through
// faults.
type faultyPortal struct {
	*server
	k      *simulatedCluster
	proxy  *faults.Proxy
	prefix string
	team   team
	ada    member
	env    int64
}

// simulate starts a portal.
func (k *simulatedCluster) simulate(t *testing.T, env ...string) *faultyPortal {
	t.Helper()
	n := k.used.Add(1) - 1
	node, name := fmt.Sprintf("simulated-%d", n), fmt.Sprintf("weir%d", n)
	rest, err := clientcmd.BuildConfigFromFlags("", leastRights(t, k.Cluster, name, "instance="+name, "storage.directory="+simulatedStorage))
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := faults.New(rest, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	access, shared := filepath.Join(t.TempDir(), "kubeconfig"), filepath.Join(t.TempDir(), "shared")
	if err := proxy.WriteKubeconfig(access); err != nil {
		t.Fatal(err)
	}
	f := &faultyPortal{k: k, proxy: proxy, prefix: name + "-p-"}
	f.server = newServer(t, options{gpus: "none", env: env, args: []string{"--runtime", "kube", "--kubeconfig", access,
		"--kube-instance", name, "--kube-prefix", f.prefix, "--kube-tolerations", cluster.SimulatedKey,
		"--shared-dir", shared, "--kube-storage", simulatedStorage, "--kube-portal", "127.0.0.1/32"}})
	t.Cleanup(func() { proxy.Set() }) // before the server ends
	var made id
	f.api(f.admin()).must("POST", "/environments", map[string]any{"name": "Simulated", "language": "none", "language_version": "1",
		"image": "simulated", "command": []string{"/bin/notebook"}}, &made)
	f.env = made.ID
	m := newMachine(t, f.server, node)
	m.name, m.gpus = node, "h100:8"
	m.start(f.authorize(m.gpuCode()))
	f.awaitProvider("online", time.Time{})
	f.team = f.server.team("speech", share.times(16), "ada")
	f.ada = f.team.Members[0]
	return f
}

func (f *faultyPortal) launch(name string) int64 { return f.ada.launch(f.team.Project, f.env, name) }

func (f *faultyPortal) running(name string) workspace {
	return f.ada.await(f.launch(name), "running", starting)
}

func (f *faultyPortal) askToStop(id int64) {
	f.t.Helper()
	f.ada.must("POST", workspacePath(id)+"/stop", nil, nil)
}

// agrees polls until the books and the cluster agree, and nothing is on its
// way any more.
func (f *faultyPortal) agrees(within time.Duration) {
	f.t.Helper()
	eventually(f.t, within, func() string {
		rows := list[workspace](f.api(f.admin()), "/workspaces?state=all")
		pods, others := f.objects()
		return disagreementOf(rows, f.api(f.admin()).inUse(), pods, others)
	})
}

// objects are the pods of this portal's workspaces, by name, and the names of
// the secrets and services.
func (f *faultyPortal) objects() (pods map[string]corev1.Pod, others []string) {
	f.t.Helper()
	ctx, pods := context.Background(), map[string]corev1.Pod{}
	ns, options := fmt.Sprintf("%s%d", f.prefix, f.team.Project), metav1.ListOptions{}
	found, err := f.k.admin.CoreV1().Pods(ns).List(ctx, options)
	secrets, err2 := f.k.admin.CoreV1().Secrets(ns).List(ctx, options)
	services, err3 := f.k.admin.CoreV1().Services(ns).List(ctx, options)
	for _, err := range []error{err, err2, err3} {
		if err != nil {
			f.t.Fatal(err)
		}
	}
	for _, pod := range found.Items {
		pods[pod.Name] = pod
	}
	for _, s := range secrets.Items {
		others = append(others, s.Name)
	}
	for _, s := range services.Items {
		others = append(others, s.Name)
	}
	return pods, others
}

// disagreementOf holds rows, shares and the cluster's objects to each other.
func disagreementOf(rows []workspace, inUse map[int64]int64, pods map[string]corev1.Pod, others []string) string {
	running := map[int64]bool{}
	for _, w := range rows {
		switch {
		case w.State == "running":
			running[w.ID] = true
		case !w.ended():
			return fmt.Sprintf("workspace %d is %s", w.ID, w.State)
		}
	}
	ran := map[int64]bool{}
	for name := range pods {
		var workspace, generation int64
		if _, err := fmt.Sscanf(name, "ws-%d-%d", &workspace, &generation); err != nil || !running[workspace] {
			return fmt.Sprintf("the pod %s is there, and no row says so", name)
		}
		if ran[workspace] {
			return fmt.Sprintf("workspace %d has two pods", workspace)
		}
		ran[workspace] = true
	}
	for w := range running {
		if !ran[w] || inUse[w] != share.GPUCores {
			return fmt.Sprintf("workspace %d should run: a pod %t, %d cores", w, ran[w], inUse[w])
		}
	}
	if len(inUse) != len(running) {
		return fmt.Sprintf("shares are in use by %v, and %v run", inUse, running)
	}
	for _, name := range others {
		if _, ok := pods[name]; !ok {
			return fmt.Sprintf("%s is left of a pod that is gone", name)
		}
	}
	return ""
}

// What the checks of the other tests lean on finds what it shall find.
func TestDisagreement(t *testing.T) {
	row := func(state string) []workspace { return []workspace{{ID: 1, State: state}} }
	pod := func(names ...string) map[string]corev1.Pod {
		pods := map[string]corev1.Pod{}
		for _, name := range names {
			pods[name] = corev1.Pod{}
		}
		return pods
	}
	inUse := map[int64]int64{1: share.GPUCores}
	for name, test := range map[string]struct {
		rows   []workspace
		inUse  map[int64]int64
		pods   map[string]corev1.Pod
		others []string
		says   string
	}{
		"all is well":       {row("running"), inUse, pod("ws-1-1"), []string{"ws-1-1"}, ""},
		"ended":             {row("stopped"), nil, nil, nil, ""},
		"on its way":        {row("stopping"), inUse, pod("ws-1-1"), nil, "is stopping"},
		"a pod too many":    {row("running"), inUse, pod("ws-1-1", "ws-2-1"), nil, "no row says so"},
		"twice":             {row("running"), inUse, pod("ws-1-1", "ws-1-2"), nil, "two pods"},
		"none":              {row("running"), inUse, nil, nil, "should run"},
		"without its share": {row("running"), nil, pod("ws-1-1"), nil, "should run"},
		"a share too many":  {row("failed"), inUse, nil, nil, "shares are in use"},
		"a secret is left":  {row("failed"), nil, nil, []string{"ws-1-1"}, "is left"},
	} {
		if got := disagreementOf(test.rows, test.inUse, test.pods, test.others); (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
