//go:build cluster

package clustertest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"weir/models"
	"weir/tools/cluster"
	"weir/tools/cluster/faults"
	"weir/workspaces/kube"
	"weir/workspaces/runtime"
)

// lostNode is the simulated node that one test takes away.
const lostNode = "simulated-1"

// faultyCluster is a control plane of its own with simulated nodes, so that
// what is done to it harms no other test.
var faultyCluster = sync.OnceValues(func() (*cluster.Cluster, error) {
	return cluster.Start(context.Background(), cluster.Options{ControlPlaneOnly: true, Simulated: 2, NodeGrace: 20 * time.Second})
})

var faultyUsed bool

func stopFaulty() {
	if !faultyUsed {
		return
	}
	if c, err := faultyCluster(); err == nil {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// faulty is a Runtime whose way to the API server leads through faults.
type faulty struct {
	*kube.Runtime
	cluster *cluster.Cluster
	proxy   *faults.Proxy
	admin   *kubernetes.Clientset // by another way
	config  kube.Config
	ns      string
}

func openFaulty(t *testing.T) *faulty {
	t.Helper()
	faultyUsed = true
	k, err := faultyCluster()
	if err != nil {
		t.Fatal(err)
	}
	direct, err := clientcmd.BuildConfigFromFlags("", k.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{cluster: k, config: config(t)}
	if f.admin, err = kubernetes.NewForConfig(direct); err != nil {
		t.Fatal(err)
	}
	if f.proxy, err = faults.New(direct, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.proxy.Close)
	f.config.Rest, f.config.Image, f.ns = f.proxy.Config(), "simulated", fmt.Sprintf("%s%d", f.config.Prefix, project)
	f.config.Tolerations = []corev1.Toleration{{Key: cluster.SimulatedKey, Operator: corev1.TolerationOpExists}}
	f.Runtime = open(t, f.config)
	t.Cleanup(func() { f.proxy.Set() })
	return f
}

// simulated is what runs nowhere.
func simulated(id int64) runtime.Spec {
	s := script("exec sleep 600")
	s.Workspace, s.Node = id, "simulated-0"
	return s
}

// runs starts a workspace and returns when it runs.
func (f *faulty) runs(t *testing.T, s runtime.Spec) runtime.State {
	t.Helper()
	state := start(t, f.Runtime, s)
	until(t, f.Runtime, state, "runs", is(runtime.PhaseRunning))
	return state
}

// stops asks a workspace to end until it has.
func (f *faulty) stops(t *testing.T, state runtime.State) {
	t.Helper()
	f.insist(t, "stopped", func() (bool, error) {
		if err := f.Stop(t.Context(), state); err != nil {
			return false, err
		}
		s, err := f.Poll(t.Context(), state)
		return s.Phase == runtime.PhaseExited, err
	})
}

// insist tries again until a step is done; it may fail only as what can be
// tried again.
func (f *faulty) insist(t *testing.T, what string, step func() (bool, error)) {
	t.Helper()
	var err error
	eventually(t, func() string { return fmt.Sprintf("%s: %v", what, err) }, func() bool {
		var done bool
		if done, err = step(); err != nil && models.KindOf(err) != models.KindUnavailable {
			t.Fatalf("%s: %s: %v", what, models.KindOf(err), err)
		}
		return done && err == nil
	})
}

// nothingLeft holds that all of a test's workspaces are gone with what they had. The list is of
// what the watches have seen, which can be broken for seconds after a fault.
func (f *faulty) nothingLeft(t *testing.T) {
	t.Helper()
	eventually(t, func() string { return fmt.Sprintf("%d objects are left", left(t, f.admin, f.ns)) }, func() bool {
		return left(t, f.admin, f.ns) == 0
	})
	f.insist(t, "nothing listed", func() (bool, error) {
		all, err := f.List(t.Context())
		return len(all) == 0, err
	})
}
