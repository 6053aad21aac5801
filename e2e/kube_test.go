//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"weir/deploy"
	"weir/tools/cluster"
)

// newCluster is a real Kubernetes with a kubelet on this machine, or the one
// of KUBECONFIG.
func newCluster(t *testing.T) (*cluster.Cluster, *kubernetes.Clientset) {
	t.Helper()
	return withClient(t, cluster.Open)
}

// ownCluster is one that only this test has.
func ownCluster(t *testing.T) (*cluster.Cluster, *kubernetes.Clientset) {
	t.Helper()
	return withClient(t, cluster.Start)
}

func withClient(t *testing.T, open opener) (*cluster.Cluster, *kubernetes.Clientset) {
	t.Helper()
	k, config := openCluster(t, open, cluster.Options{})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return k, client
}

// opener is cluster.Open or cluster.Start.
type opener func(context.Context, cluster.Options) (*cluster.Cluster, error)

// foreign is held by the test that uses the cluster of KUBECONFIG: each expects to find
// nothing of another's in it.
var foreign sync.Mutex

// openCluster lets the test run beside others and gives it a cluster until it ends.
func openCluster(t *testing.T, open opener, o cluster.Options) (*cluster.Cluster, *rest.Config) {
	t.Helper()
	t.Parallel()
	if os.Getenv("KUBECONFIG") != "" {
		foreign.Lock()
		t.Cleanup(foreign.Unlock)
	}
	o.Log = t.Logf
	k, err := open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := clientcmd.BuildConfigFromFlags("", k.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(stateOf(k, config))
		}
	})
	return k, config
}

// inCluster are a server's options to run workspaces there, with the rights
// that the chart gives it.
func inCluster(t *testing.T, k *cluster.Cluster) options {
	return inClusterAt(t, k, filepath.Join(t.TempDir(), "shared"))
}

// inClusterAt is the same with the shared directories at a place.
func inClusterAt(t *testing.T, k *cluster.Cluster, shared string) options {
	access := leastRights(t, k, deploy.Release, "storage.directory="+shared)
	return options{gpus: "none", args: []string{"--runtime", "kube", "--kubeconfig", access, "--shared-dir", shared,
		"--kube-storage", shared, "--kube-portal", "127.0.0.1/32", "--kube-image", k.Image}}
}

// jupyterIn puts the cluster's image into the catalog.
func (s *server) jupyterIn(k *cluster.Cluster) int64 {
	s.t.Helper()
	var env id
	s.api(s.admin()).must("POST", "/environments", map[string]any{"name": "Jupyter in the cluster", "language": "python", "language_version": "3.11",
		"image": k.Image, "command": []string{"/usr/bin/jupyter-notebook"}}, &env)
	return env.ID
}

// nodeLends enrols an agent under the node's name.
func (s *server) nodeLends(k *cluster.Cluster) *machine {
	s.t.Helper()
	m := newMachine(s.t, s, k.Node)
	m.name = k.Node
	m.start(s.authorize(m.gpuCode()))
	s.awaitProvider("online", time.Time{})
	return m
}

// A member launches by the portal; a real pod with real Jupyter runs on the
// node that lends the GPU; a cell is executed through the proxy.
func TestStoryInCluster(t *testing.T) {
	k, client := newCluster(t)
	s := newServer(t, inCluster(t, k))
	env := s.jupyterIn(k)
	s.nodeLends(k)
	team := s.team("speech", share, "ada", "ben")
	ada, ben := team.Members[0], team.Members[1]
	namespace := fmt.Sprintf("weir-p-%d", team.Project)

	adas := ada.await(ada.launch(team.Project, env, "plan"), "running", starting)
	pod := onlyPod(t, client, namespace)
	if pod.Spec.NodeName != k.Node {
		t.Errorf("the pod is on %q", pod.Spec.NodeName)
	}
	if cores := pod.Spec.Containers[0].Resources.Limits["weir.dev/gpu-cores"]; cores.Value() != share.GPUCores {
		t.Errorf("the pod has %s GPU cores", cores.String())
	}
	nb := ada.open(adas.ID)
	if got := executeCell(t, nb.client, nb.origin, "import os; print(open('a.txt','w').write('42'), os.getcwd())"); got != "2 /home/jovyan\n" {
		t.Errorf("the cell printed %q", got)
	}

	bens := ben.await(ben.launch(team.Project, env, "bens"), "running", starting)
	theirs := fmt.Sprintf("/notebook/%d/%d/a.txt", team.Project, ada.ID)
	other := ben.open(bens.ID)
	if got := executeCell(t, other.client, other.origin, fmt.Sprintf("print(open(%q).read())", theirs)); got != "42\n" {
		t.Errorf("the colleague reads %q", got)
	}
	if got := executeCell(t, other.client, other.origin, fmt.Sprintf("open(%q, 'w')", theirs)); !strings.Contains(got, "Read-only file system") {
		t.Errorf("the colleague's write says %q", got)
	}

	s.stopWorkspaces()
	eventually(t, gone, func() string { return leftIn(t, client, namespace) })
}

// A pod that somebody deletes by hand is a failed workspace with its reason,
// and a server that was killed adopts what runs.
func TestClusterFaults(t *testing.T) {
	k, client := newCluster(t)
	s := newServer(t, inCluster(t, k))
	env := s.jupyterIn(k)
	s.nodeLends(k)
	team := s.team("speech", share.times(2), "ada")
	ada := team.Members[0]
	namespace := fmt.Sprintf("weir-p-%d", team.Project)
	first := ada.await(ada.launch(team.Project, env, "one"), "running", starting)
	pod := onlyPod(t, client, namespace)

	s.kill()
	s.start()
	ada.await(first.ID, "running", starting)
	if again := onlyPod(t, client, namespace); again.UID != pod.UID {
		t.Error("another pod runs after the server was killed")
	}

	if err := client.CoreV1().Pods(namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w := workspace{}
	eventually(t, gone, func() string {
		if w = ada.workspace(first.ID); w.State == "failed" {
			return ""
		}
		return "the workspace is " + w.State
	})
	if w.Reason == "" {
		t.Error("it failed without a reason")
	}
	ada.runsInCluster(client, team.Project, env)
	ada.readsOnly(team.Project, env)
	eventually(t, gone, func() string { return leftIn(t, client, namespace) })
}

// namespace is where a workspace's pod is.
func (w workspace) namespace() string { return fmt.Sprintf("weir-p-%d", w.ProjectID) }

func onlyPod(t *testing.T, client *kubernetes.Clientset, namespace string) corev1.Pod {
	t.Helper()
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	return pods.Items[0]
}

// leftIn says what of workspaces is left in a namespace.
func leftIn(t *testing.T, client *kubernetes.Clientset, namespace string) string {
	t.Helper()
	options := metav1.ListOptions{LabelSelector: "weir.dev/workspace"}
	ctx := context.Background()
	pods, err := client.CoreV1().Pods(namespace).List(ctx, options)
	secrets, err2 := client.CoreV1().Secrets(namespace).List(ctx, options)
	services, err3 := client.CoreV1().Services(namespace).List(ctx, options)
	for _, err := range []error{err, err2, err3} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := len(pods.Items) + len(secrets.Items) + len(services.Items); n > 0 {
		return fmt.Sprintf("%d objects are left in %s", n, namespace)
	}
	return ""
}
