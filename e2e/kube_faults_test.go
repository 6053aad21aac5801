//go:build cluster

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir/tools/cluster"
	"weir/tools/cluster/faults"
)

// outage is how long the API server is away in the test of that.
const outage = 30 * time.Second

// Faults of a real control plane under the whole portal. After each the books
// and the cluster agree, and nothing is left behind. They come one after the other: parallel ones
// would wait for all other tests, with the cluster idle.
func TestFaultsInCluster(t *testing.T) {
	k := newSimulatedCluster(t, 2+len(clusterSteps))
	t.Run("one", func(t *testing.T) {
		f := k.simulate(t)
		f.changedByHand()
		f.apiServerAway()
		f.etcdRestarted()
	})
	for _, step := range clusterSteps {
		t.Run("killed at "+step, func(t *testing.T) { k.simulate(t).diesAt(step) })
	}
	t.Run("bad answers", func(t *testing.T) { k.simulate(t).badAnswers() })
}

// badAnswers has sixteen workspaces start and stop while the API server
// refuses requests and loses answers. None fails for that.
func (f *faultyPortal) badAnswers() {
	f.proxy.Set(
		faults.Rule{Match: faults.IsChange, Percent: 7, Status: http.StatusTooManyRequests},
		faults.Rule{Match: faults.IsChange, Percent: 7, Status: http.StatusInternalServerError},
		faults.Rule{Match: faults.IsChange, Percent: 10, Lost: true},
		faults.Rule{Percent: 5, Status: http.StatusServiceUnavailable},
	)
	var ids []int64
	for i := range 16 {
		ids = append(ids, f.launch(fmt.Sprint("nb-", i)))
	}
	f.proxy.Cut()
	for _, id := range ids {
		f.ada.await(id, "running", starting)
	}
	f.proxy.Cut()
	for _, id := range ids[:12] {
		f.askToStop(id)
	}
	for _, id := range ids[:12] {
		f.ada.await(id, "stopped", starting)
	}
	f.t.Logf("faults: %v", f.proxy.Hits())
	f.proxy.Set()
	f.agrees(starting)
	for _, id := range ids[12:] {
		if w := f.ada.workspace(id); w.State != "running" {
			f.t.Errorf("workspace %d is %s: %s", id, w.State, w.Reason)
		}
	}
}

// changedByHand deletes and makes objects behind the portal's back.
func (f *faultyPortal) changedByHand() {
	kept, lost := f.running("kept"), f.running("lost")
	pods := f.k.admin.CoreV1().Pods(fmt.Sprintf("%s%d", f.prefix, f.team.Project))
	name := func(w workspace) string { return fmt.Sprintf("ws-%d-1", w.ID) }

	// A row without its pod, and a pod without a row, that a server finds.
	f.kill()
	if err := pods.Delete(f.t.Context(), name(lost), metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
	like, err := pods.Get(f.t.Context(), name(kept), metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	stray := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "ws-999-1", Labels: like.Labels}, Spec: like.Spec}
	stray.Spec.NodeName = ""
	if _, err := pods.Create(f.t.Context(), stray, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	f.start()
	f.agrees(starting)
	if w := f.ada.workspace(lost.ID); w.State != "failed" || !strings.Contains(w.Reason, "no longer running") {
		f.t.Errorf("without its pod the workspace is %s: %s", w.State, w.Reason)
	}

	// A pod that loses its labels stays the workspace's.
	if _, err := pods.Patch(f.t.Context(), name(kept), types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{}); err != nil {
		f.t.Fatal(err)
	}
	eventually(f.t, gone, func() string {
		pod, err := pods.Get(f.t.Context(), name(kept), metav1.GetOptions{})
		if err != nil || pod.UID != like.UID {
			f.t.Fatalf("the pod is %+v, %v", pod.ObjectMeta, err)
		}
		if fmt.Sprint(pod.Labels) != fmt.Sprint(like.Labels) {
			return fmt.Sprintf("its labels are %v", pod.Labels)
		}
		return ""
	})
	f.agrees(gone)
	f.ada.await(kept.ID, "running", gone)
	f.askToStop(kept.ID)
	f.agrees(starting)
}

// apiServerAway has some workspaces start and some stop while there is no API
// server for half a minute.
func (f *faultyPortal) apiServerAway() {
	stays := f.running("stays")
	var ending, beginning []int64
	for i := range 3 {
		ending = append(ending, f.running(fmt.Sprint("ends-", i)).ID)
	}
	if err := f.k.Kill(cluster.APIServer); err != nil {
		f.t.Fatal(err)
	}
	over := time.Now().Add(outage)
	for i, id := range ending {
		f.askToStop(id)
		beginning = append(beginning, f.launch(fmt.Sprint("begins-", i)))
	}
	eventually(f.t, outage+gone, func() string {
		for _, w := range list[workspace](f.api(f.admin()), "/workspaces?state=all") {
			if w.State == "failed" && !strings.HasPrefix(w.Name, "lost") {
				f.t.Fatalf("%s failed: %s", w.Name, w.Reason)
			}
			if w.ID == stays.ID && w.State != "running" {
				f.t.Fatalf("what runs is %s: %s", w.State, w.Reason)
			}
		}
		if time.Now().Before(over) {
			return "the outage goes on"
		}
		return ""
	})
	// The cluster's own programs wait longer and longer, up to a minute; this
	// test is not about them.
	own := []string{cluster.Scheduler, cluster.Controllers, cluster.KWOK}
	for _, name := range own {
		if err := f.k.Kill(name); err != nil {
			f.t.Fatal(err)
		}
	}
	for _, name := range append([]string{cluster.APIServer}, own...) {
		if err := f.k.Restart(f.t.Context(), name); err != nil {
			f.t.Fatal(err)
		}
	}
	f.settles(stays.ID, ending, beginning)
}

// etcdRestarted does the same while the API server is there, and has lost what
// is behind it.
func (f *faultyPortal) etcdRestarted() {
	stays, ends := f.running("stays-too"), f.running("ends-too")
	if err := f.k.Kill(cluster.Etcd); err != nil {
		f.t.Fatal(err)
	}
	f.askToStop(ends.ID)
	begins := f.launch("begins-too")
	if err := f.k.Restart(f.t.Context(), cluster.Etcd); err != nil {
		f.t.Fatal(err)
	}
	f.settles(stays.ID, []int64{ends.ID}, []int64{begins})
}

// settles awaits what was asked for while the cluster was away, and ends it.
func (f *faultyPortal) settles(stays int64, ending, beginning []int64) {
	began := time.Now()
	for _, id := range beginning {
		f.ada.await(id, "running", starting)
	}
	for _, id := range ending {
		f.ada.await(id, "stopped", starting)
	}
	f.agrees(starting)
	f.t.Logf("all is as asked for %s after the cluster is back", time.Since(began).Round(time.Millisecond))
	if w := f.ada.workspace(stays); w.State != "running" {
		f.t.Errorf("what ran is %s: %s", w.State, w.Reason)
	}
	for _, id := range append(beginning, stays) {
		f.askToStop(id)
	}
	f.agrees(starting)
}
