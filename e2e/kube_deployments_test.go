//go:build cluster

package e2e

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"weir/handlers"
	"weir/models"
	"weir/tools/cluster"
)

const partLabel = "weir.dev/deployment-part"

// partPods are the names of the pods of parts in a namespace.
func partPods(t *testing.T, client *kubernetes.Clientset, namespace string) (names []string) {
	t.Helper()
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: partLabel})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		names = append(names, p.Name)
	}
	return names
}

// A model generates the same in one pod and in two, cut between layers or by attention heads, through
// each of two servers and through both at once; also after a pod was deleted, the leader was killed, and
// the only node has left the cluster for a while.
func TestDeploymentInCluster(t *testing.T) {
	k, client := newCluster(t)
	one, other := replicas(t, k, "WEIR_DEPLOYMENT_MOVE_AFTER=5s")
	var env id
	one.api(one.admin()).must("POST", "/environments", map[string]any{"name": "NumPy in the cluster", "language": "python", "language_version": "3.11",
		"versions": map[string]string{"numpy": "1.24"}, "image": k.Image, "command": []string{"/usr/bin/python3"}, "no_notebook": true}, &env)
	node := other.nodeLends(k)
	limit := resources{GPUCores: 100, GPUMemoryMiB: 40_000, CPUMilli: 16_000, MemoryMiB: 16_384, StorageMiB: 1000}
	team := one.team("servers", limit, "ada")
	ada := team.Members[0]
	elsewhere := member{User: ada.User, ID: ada.ID, Email: ada.Email, Name: ada.Name, api: other.api(ada.token)}
	namespace := fmt.Sprintf("weir-p-%d", team.Project)
	ada.writesModel(one, team.Project, "tiny", decoderConfig, decoder(1))

	whole := ada.deploy(t, team.Project, 1, "")
	want, ok := whole.asks()
	if !ok {
		t.Fatalf("it is not served: %+v", whole.get())
	}
	ada.must("POST", fmt.Sprintf("/deployments/%d/stop", whole.id), nil, nil)
	heads := ada.deploy(t, team.Project, 2, "tensor-parallel")
	heads.same(want)
	ada.must("POST", fmt.Sprintf("/deployments/%d/stop", heads.id), nil, nil)
	layers := elsewhere.deploy(t, team.Project, 2, "")
	through := served{t, ada, layers.id}
	through.same(want)
	layers.same(want)
	layers.streams(want)
	var requests sync.WaitGroup
	for range 6 { // more than the parts compute at once, of which each server knows its own
		requests.Go(func() { through.same(want) })
		requests.Go(func() { layers.same(want) })
	}
	requests.Wait()

	pods := partPods(t, client, namespace)
	if len(pods) < 2 {
		t.Fatalf("the pods are %v", pods)
	}
	restarts := func() (n int64) {
		for _, p := range layers.get().Parts {
			n += p.Restarts
		}
		return n
	}
	for _, name := range pods { // those of the deployments before are ending
		_ = client.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
	}
	eventually(t, starting, func() string {
		if n := restarts(); n != 2 {
			return fmt.Sprintf("%d restarts: %+v", n, layers.get())
		}
		return ""
	})
	layers.serves()
	layers.same(want)

	one.kill() // which leads
	layers.same(want)
	if n := restarts(); n != 2 {
		t.Errorf("with the leader, parts have ended: %d restarts", n)
	}

	node.kill()
	if err := k.Kill(cluster.Kubelet); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Nodes().Delete(t.Context(), k.Node, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, starting, func() string {
		if d := layers.get(); d.State != models.DeploymentIdle || d.Demand != (models.Demand{}) {
			return fmt.Sprintf("%+v", d)
		}
		return ""
	})
	if err := k.Restart(t.Context(), cluster.Kubelet); err != nil {
		t.Fatal(err)
	}
	node.start("")
	eventually(t, starting, func() string {
		if _, served := layers.asks(); !served {
			return fmt.Sprintf("%+v", layers.get().Events)
		}
		return ""
	})
	layers.same(want)
	elsewhere.must("POST", fmt.Sprintf("/deployments/%d/stop", layers.id), nil, nil)
	eventually(t, lease+gone, func() string {
		for _, d := range list[handlers.Deployment](elsewhere.api, "/deployments") {
			if d.State != models.DeploymentStopped {
				return fmt.Sprintf("%+v", d)
			}
		}
		if left := partPods(t, client, namespace); len(left) > 0 {
			return fmt.Sprintf("the pods %v are left", left)
		}
		return ""
	})
}
