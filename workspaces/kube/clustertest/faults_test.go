//go:build cluster

package clustertest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir/models"
	"weir/tools/cluster"
	"weir/tools/cluster/faults"
	"weir/workspaces/runtime"
)

// A node that falls silent is told of, and nothing on it is taken for ended;
// when it is removed from the cluster, what was there has ended and is gone.
// The cluster takes a minute for that, in which the tests below run.
func TestNodeLost(t *testing.T) {
	f := openFaulty(t)
	stays, stopped := simulated(1), simulated(2)
	stays.Node, stopped.Node = lostNode, lostNode
	lost, stopping := f.runs(t, stays), f.runs(t, stopped)
	if err := f.cluster.Kill(cluster.KWOK); err != nil {
		t.Fatal(err)
	}
	until(t, f.Runtime, lost, "said to be silent", says("The node "+lostNode+" is not responding; the workspace may still be running there"))
	if err := f.Stop(t.Context(), stopping); err != nil {
		t.Fatal(err)
	}
	if s, err := f.Poll(t.Context(), stopping); err != nil || s.Phase == runtime.PhaseExited {
		t.Errorf("what may still run has %+v, %v", s, err)
	}
	if err := f.admin.CoreV1().Nodes().Delete(t.Context(), lostNode, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.cluster.Restart(t.Context(), cluster.KWOK); err != nil {
		t.Fatal(err)
	}
	t.Parallel()
	s := until(t, f.Runtime, lost, "exited", is(runtime.PhaseExited))
	if !says("The node is no longer part of the cluster")(s) {
		t.Errorf("it ended with %q", s.Message)
	}
	f.stops(t, stopping)
	f.nothingLeft(t)
}

// While a part of the control plane is away, what runs is said to run, and
// nothing fails but with a word that it can be tried again; when it is back,
// it is.
func TestControlPlaneAway(t *testing.T) {
	f := openFaulty(t)
	k := f.cluster
	restart := func(program string) func() error {
		return func() error { return k.Restart(t.Context(), program) }
	}
	for i, away := range []struct {
		name       string
		step, back func() error
	}{
		{"API server killed", func() error { return k.Kill(cluster.APIServer) }, restart(cluster.APIServer)},
		{"API server silent", func() error { return k.Pause(cluster.APIServer) }, func() error { return k.Continue(cluster.APIServer) }},
		{"etcd killed", func() error { return k.Kill(cluster.Etcd) }, restart(cluster.Etcd)},
	} {
		t.Run(away.name, func(t *testing.T) {
			id := int64(10 * (i + 1))
			stays, ends := f.runs(t, simulated(id)), f.runs(t, simulated(id+1))
			if err := away.step(); err != nil {
				t.Fatal(err)
			}
			back := sync.OnceValue(away.back)
			t.Cleanup(func() {
				if err := back(); err != nil {
					t.Error(err)
				}
			})
			if s, err := f.Poll(t.Context(), stays); err != nil || s.Phase != runtime.PhaseRunning {
				t.Errorf("what runs: %+v, %v", s, err)
			}
			waits := simulated(id + 2)
			var stopping sync.WaitGroup
			stopping.Go(func() {
				if err := f.Stop(t.Context(), ends); models.KindOf(err) != models.KindUnavailable {
					t.Errorf("stopping: %v", err)
				}
			})
			state, err := f.Start(t.Context(), waits)
			if models.KindOf(err) != models.KindUnavailable || state == nil {
				t.Errorf("starting: %s, %v", state, err)
			}
			stopping.Wait()
			if err := back(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			f.insist(t, "started", func() (bool, error) {
				again, err := f.Start(t.Context(), waits)
				return string(again) == string(state), err
			})
			until(t, f.Runtime, state, "runs", is(runtime.PhaseRunning))
			t.Logf("the next runs %s after it is back", time.Since(began).Round(time.Millisecond))
			for _, all := range []runtime.State{stays, ends, state} {
				f.stops(t, all)
			}
			f.nothingLeft(t)
			t.Logf("and all is gone after %s", time.Since(began).Round(time.Millisecond))
		})
	}
}

// births counts the pods of each name that there ever were.
func (f *faulty) births(t *testing.T) func() map[string]int {
	t.Helper()
	w, err := f.admin.CoreV1().Pods(f.ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[types.UID]string{}
	var reader sync.WaitGroup
	reader.Go(func() {
		for event := range w.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				mu.Lock()
				seen[pod.UID] = pod.Name
				mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		w.Stop()
		reader.Wait()
	})
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		born := map[string]int{}
		for _, name := range seen {
			born[name]++
		}
		return born
	}
}

// Twenty workspaces start and stop while the API server refuses one request
// in three or loses its answer, and watches break: each runs once, and
// nothing is left.
func TestBadAnswers(t *testing.T) {
	f := openFaulty(t)
	f.stops(t, f.runs(t, simulated(1)))
	born := f.births(t)
	f.proxy.Set(
		faults.Rule{Match: faults.IsChange, Percent: 8, Status: http.StatusTooManyRequests},
		faults.Rule{Match: faults.IsChange, Percent: 8, Status: http.StatusInternalServerError},
		faults.Rule{Match: faults.IsChange, Percent: 8, Status: http.StatusBadGateway},
		faults.Rule{Match: faults.IsChange, Percent: 12, Lost: true},
		faults.Rule{Percent: 5, Status: http.StatusServiceUnavailable},
	)
	const workspacesAtOnce, each = 4, 5
	var all sync.WaitGroup
	for hand := range workspacesAtOnce {
		all.Go(func() {
			for n := range each {
				f.live(t, int64(100+10*hand+n))
				f.proxy.Cut()
			}
		})
	}
	all.Wait()
	for i, hits := range f.proxy.Hits() {
		if hits == 0 {
			t.Errorf("the fault %d has hit nothing", i)
		}
	}
	t.Logf("faults: %v", f.proxy.Hits())
	f.proxy.Set()
	f.nothingLeft(t)
	names := born()
	for name, n := range names {
		if n != 1 {
			t.Errorf("%s was made %d times", name, n)
		}
	}
	if len(names) < workspacesAtOnce*each {
		t.Errorf("only %d pods were seen: %v", len(names), names)
	}
}

// live is the whole life of a workspace, as a reconciler leads it.
func (f *faulty) live(t *testing.T, id int64) {
	var state runtime.State
	steps := []struct {
		what string
		step func() (bool, error)
	}{
		{"started", func() (done bool, err error) {
			state, err = f.Start(t.Context(), simulated(id))
			return true, err
		}},
		{"running", func() (bool, error) {
			s, err := f.Poll(t.Context(), state)
			if s.Phase == runtime.PhaseExited {
				t.Errorf("workspace %d ended by itself: %s", id, s.Message)
			}
			return s.Phase != runtime.PhaseStarting, err
		}},
		{"stopped", func() (bool, error) {
			if err := f.Stop(t.Context(), state); err != nil {
				return false, err
			}
			s, err := f.Poll(t.Context(), state)
			return s.Phase == runtime.PhaseExited, err
		}},
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, s := range steps {
		for deadline := time.Now().Add(patience); ; <-tick.C {
			done, err := s.step()
			if done && err == nil {
				break
			}
			if err != nil && models.KindOf(err) != models.KindUnavailable || time.Now().After(deadline) {
				t.Errorf("workspace %d is not %s: %v", id, s.what, err)
				return
			}
		}
	}
}

// While no watch is there, nothing is taken for gone or for new that was not
// asked for; when it is back, what happened meanwhile is seen.
func TestStalePicture(t *testing.T) {
	f := openFaulty(t)
	state := f.runs(t, simulated(1))
	f.proxy.Set(faults.Rule{Match: faults.IsPicture, Percent: 100, Status: http.StatusServiceUnavailable})
	if f.proxy.Cut() == 0 {
		t.Fatal("there was no watch to cut")
	}
	little := int64(0)
	if err := f.admin.CoreV1().Pods(f.ns).Delete(t.Context(), "ws-1-1", metav1.DeleteOptions{GracePeriodSeconds: &little}); err != nil {
		t.Fatal(err)
	}
	if err := f.admin.NetworkingV1().NetworkPolicies(f.ns).Delete(t.Context(), "default-deny", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if s, err := f.Poll(t.Context(), state); err != nil || s.Phase != runtime.PhaseRunning {
		t.Errorf("while nothing can be known: %+v, %v", s, err)
	}
	if err := f.Stop(t.Context(), state); err != nil {
		t.Errorf("stopping what is gone: %v", err)
	}
	unseen := f.runs(t, simulated(2)) // asked for by name
	f.proxy.Set()
	until(t, f.Runtime, state, "exited", is(runtime.PhaseExited))
	eventually(t, func() string { return "the policy is not back" }, func() bool {
		_, err := f.admin.NetworkingV1().NetworkPolicies(f.ns).Get(t.Context(), "default-deny", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	f.stops(t, unseen)
	f.nothingLeft(t)
}

// A stop is of the pod that was seen: one that others have put in its place
// meanwhile, under its name, is not deleted unseen.
func TestStopOfAReplacedPod(t *testing.T) {
	f := openFaulty(t)
	state := f.runs(t, simulated(1))
	pods := f.admin.CoreV1().Pods(f.ns)
	old := must(pods.Get(t.Context(), "ws-1-1", metav1.GetOptions{}))(t)
	f.proxy.Set(faults.Rule{Match: faults.IsPicture, Percent: 100, Status: http.StatusServiceUnavailable})
	if f.proxy.Cut() == 0 {
		t.Fatal("there was no watch to cut")
	}
	if err := pods.Delete(t.Context(), old.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	// KWOK deletes by name what it saw being deleted, even late. The new pod is not on a
	// node of KWOK's, and its finalizer keeps it.
	spec := *old.Spec.DeepCopy()
	spec.NodeName, spec.SchedulerName = "", "none"
	replacement := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: old.Name, Labels: old.Labels, Finalizers: []string{"weir.dev/test"}}, Spec: spec}
	eventually(t, func() string { return "the pod is not replaced" }, func() bool {
		created, err := pods.Create(t.Context(), replacement, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		if err == nil {
			replacement = created
		}
		return err == nil
	})
	if err := f.Stop(t.Context(), state); err == nil {
		t.Error("the stop of a pod that is gone says nothing")
	}
	if now := must(pods.Get(t.Context(), old.Name, metav1.GetOptions{}))(t); now.UID != replacement.UID {
		t.Errorf("the pod in its place is %+v", now.ObjectMeta)
	}
	must(pods.Patch(t.Context(), old.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))(t)
	f.proxy.Set()
	f.stops(t, state) // it is seen now
	f.nothingLeft(t)
}

// A pod whose labels others have removed or changed is still ours.
func TestLabelsRemoved(t *testing.T) {
	f := openFaulty(t)
	state := f.runs(t, simulated(1))
	pods := f.admin.CoreV1().Pods(f.ns)
	before, err := pods.Get(t.Context(), "ws-1-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, patch := range []string{
		`{"metadata":{"labels":{"app.kubernetes.io/managed-by":null,"weir.dev/member":null}}}`,
		`{"metadata":{"labels":{"app.kubernetes.io/instance":"other"}}}`,
	} {
		if _, err := pods.Patch(t.Context(), "ws-1-1", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() string { return "the labels are not back" }, func() bool {
			if s, err := f.Poll(t.Context(), state); err != nil || s.Phase != runtime.PhaseRunning {
				t.Fatalf("it is said to be %+v, %v", s, err)
			}
			pod, err := pods.Get(t.Context(), "ws-1-1", metav1.GetOptions{})
			if err != nil || pod.UID != before.UID {
				t.Fatalf("the pod is %+v, %v", pod.ObjectMeta, err)
			}
			return fmt.Sprint(pod.Labels) == fmt.Sprint(before.Labels)
		})
	}
	if _, err := pods.Patch(t.Context(), "ws-1-1", types.MergePatchType, []byte(`{"metadata":{"labels":{"weir.dev/workspace":"5"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string { return "it is not listed as what it is" }, func() bool {
		all, err := f.List(t.Context())
		return err == nil && len(all) == 1 && all[0].Workspace == 1 && string(all[0].State) == string(state)
	})
	// A later process, that has not seen it before.
	if _, err := pods.Patch(t.Context(), "ws-1-1", types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	later := open(t, f.config)
	if s, err := later.Poll(t.Context(), state); err != nil || s.Phase != runtime.PhaseRunning {
		t.Errorf("a later process says %+v, %v", s, err)
	}
	f.stops(t, state)
	f.nothingLeft(t)
}

// A namespace that cannot end holds up a start, which says so, and succeeds
// when it has ended.
func TestNamespaceStuck(t *testing.T) {
	f := openFaulty(t)
	state := f.runs(t, simulated(1))
	inUse := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "blocked", Finalizers: []string{"weir.test/blocked"}}}
	if _, err := f.admin.CoreV1().ConfigMaps(f.ns).Create(t.Context(), inUse, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.admin.CoreV1().Namespaces().Delete(t.Context(), f.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, f.Runtime, state, "exited", is(runtime.PhaseExited))
	again := simulated(1)
	again.Generation = 2
	for range 3 {
		if _, err := f.Start(t.Context(), again); models.KindOf(err) != models.KindUnavailable || !strings.Contains(err.Error(), "is being deleted") {
			t.Errorf("into a namespace that ends: %v", err)
		}
	}
	if _, err := f.admin.CoreV1().ConfigMaps(f.ns).Patch(t.Context(), "blocked", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	second := f.runs(t, again)
	f.stops(t, second)
	f.nothingLeft(t)
}
