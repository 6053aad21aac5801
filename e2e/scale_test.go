//go:build cluster

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/tools/cluster"
)

const (
	gpusPerNode  = 8
	perMember    = 20 // workspaces; the most that one may have
	perTeam      = 10 // members
	scalers      = 8  // that ask at the same time
	mostRequests = 8  // to the API server for the life of a workspace
	scalePatient = 20 * time.Minute
)

// tiny is what each of many workspaces takes.
var tiny = resources{GPUCores: 50, GPUMemoryMiB: 8 << 10, CPUMilli: 100, MemoryMiB: 128}

// size is how many nodes and workspaces there are: WEIR_SCALE=1000x5000.
func size(t *testing.T) (nodes, workspaces int) {
	t.Helper()
	text := os.Getenv("WEIR_SCALE")
	if text == "" {
		text = "40x200"
	}
	if n, err := fmt.Sscanf(text, "%dx%d", &nodes, &workspaces); n != 2 || err != nil || nodes < 1 || workspaces < 1 {
		t.Fatalf("WEIR_SCALE=%q is not NODESxWORKSPACES", text)
	}
	return nodes, workspaces
}

// simulation is a portal on a real API server with simulated nodes.
type simulation struct {
	*server
	client *kubernetes.Clientset
	nodes  int
	env    int64
}

func newSimulation(t *testing.T, nodes int) *simulation {
	t.Helper()
	k, at := openCluster(t, cluster.Open, cluster.Options{ControlPlaneOnly: true, Simulated: nodes})
	at.QPS, at.ContentType = -1, "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(at)
	if err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(t.TempDir(), "shared")
	s := newServer(t, options{gpus: "none", database: storetest.Postgres(t), args: []string{"--runtime", "kube", "--kubeconfig", k.Kubeconfig,
		"--shared-dir", shared, "--kube-storage", shared, "--kube-portal", "127.0.0.1/32", "--kube-image", "weir.local/none",
		"--kube-tolerations", cluster.SimulatedKey}})
	sim := &simulation{server: s, client: client, nodes: nodes}
	sim.lend()
	var env id
	s.api(s.admin()).must("POST", "/environments", map[string]any{"name": "Simulated", "language": "python", "language_version": "3.11",
		"image": "weir.local/none", "command": []string{"/bin/none"}}, &env)
	sim.env = env.ID
	return sim
}

// lend makes every node a provider of simulated GPUs. They have no agents, so
// they were heard of in the future.
func (s *simulation) lend() {
	s.t.Helper()
	s.books()
	storetest.InTx(s.t, s.store, func(q *store.Queries) error {
		now := q.Now()
		for n := range s.nodes {
			p := models.Provider{Name: fmt.Sprintf("simulated-%d", n), State: models.ProviderOnline, SeenAt: now.Add(24 * time.Hour), Version: 1, CreatedAt: now}
			if err := q.CreateProvider(&p); err != nil {
				return err
			}
			for i := range gpusPerNode {
				d := models.Device{ProviderID: p.ID, UUID: fmt.Sprintf("GPU-%d-%d", n, i), Number: int64(i), Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81_559,
					Simulated: true, Present: true, Sharing: models.SharingTimeSlicing, Cores: 100, Version: 1, CreatedAt: now}
				if err := q.CreateDevice(&d); err != nil {
					return err
				}
			}
		}
		return nil
	})
	eventually(s.t, 5*time.Minute, func() string {
		list, err := s.client.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
		told := 0
		for _, n := range list.Items {
			if cores := n.Status.Allocatable["weir.dev/gpu-cores"]; cores.Value() == 100*gpusPerNode {
				told++
			}
		}
		if err == nil && told == s.nodes {
			return ""
		}
		return fmt.Sprintf("%d of %d nodes tell their GPU cores, %v", told, s.nodes, err)
	})
}

// staff makes teams of members enough for that many workspaces.
func (s *simulation) staff(workspaces int) (members []member, project map[int64]int64) {
	project = map[int64]int64{}
	limit := tiny.times(perMember)
	for left := (workspaces + perMember - 1) / perMember; left > 0; left -= perTeam {
		var names []string
		for i := range min(left, perTeam) {
			names = append(names, fmt.Sprintf("m%d-%d", left, i))
		}
		team := s.team(fmt.Sprint("team ", left), limit, names...)
		for _, m := range team.Members {
			project[m.ID] = team.Project
		}
		members = append(members, team.Members...)
	}
	return members, project
}

// atOnce has n things done by several hands; the first error ends the test.
func atOnce(t testing.TB, n int, do func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var work sync.WaitGroup
	errs := make(chan error, scalers)
	for range scalers {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	work.Wait()
	select {
	case err := <-errs:
		t.Fatal(err)
	default:
	}
}

// lookEvery is how often all pods are listed: it costs the API server as much
// as starting some.
const lookEvery = 5 * time.Second

// bound waits until n pods of a selection have a node, and tells when the last
// one got it, to a second.
func (s *simulation) bound(namespace, selector string, n int) (last time.Time) {
	s.t.Helper()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for deadline := time.Now().Add(scalePatient); ; <-tick.C {
		list, err := s.client.CoreV1().Pods(namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
		if err != nil {
			s.t.Fatal(err)
		}
		bound := 0
		for _, p := range list.Items {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
					bound++
					if c.LastTransitionTime.After(last) {
						last = c.LastTransitionTime.Time
					}
				}
			}
		}
		if bound >= n {
			return last
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d of %d pods have a node; workspaces %v", bound, n, s.counted())
		}
	}
}

// byScheduler has Kubernetes' own scheduler place n pods, and tells how long
// it took from the first request until the last pod had a node.
func (s *simulation) byScheduler(n int) time.Duration {
	s.t.Helper()
	ctx := s.t.Context()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, time.Minute, func() string {
		_, err := s.client.CoreV1().ServiceAccounts("plain").Get(ctx, "default", metav1.GetOptions{})
		return errorText(err)
	})
	request := corev1.ResourceList{"weir.dev/gpu-cores": resource.MustParse("50"), "cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")}
	no, none := false, int64(0)
	began := time.Now()
	atOnce(s.t, n, func(i int) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}, Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &none,
			Tolerations: []corev1.Toleration{{Key: cluster.SimulatedKey, Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "c", Image: "weir.local/none", Resources: corev1.ResourceRequirements{Limits: request, Requests: request}}}}}
		_, err := s.client.CoreV1().Pods("plain").Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	took := s.bound("plain", "", n).Sub(began)
	if err := s.client.CoreV1().Pods("plain").DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &none}, metav1.ListOptions{}); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, scalePatient, func() string {
		list, err := s.client.CoreV1().Pods("plain").List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil && len(list.Items) > 0 {
			return "pods are left"
		}
		return errorText(err)
	})
	return took
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

var clusterRequests = regexp.MustCompile(`(?m)^weir_cluster_request_duration_seconds_count\{[^}]*\} (\S+)$`)

// requests counts what the server has asked of the API server.
func (s *simulation) requests() (n float64) {
	s.t.Helper()
	response, err := s.scrape()
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatal(response.Status, string(body), err)
	}
	if !strings.Contains(string(body), "weir_cluster_request") {
		s.t.Fatalf("no count of requests in %s", body)
	}
	for _, m := range clusterRequests.FindAllStringSubmatch(string(body), -1) {
		count, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			s.t.Fatal(err)
		}
		n += count
	}
	return n
}

// memory is the most that the server's process ever had, in MiB.
func (s *simulation) memory() int {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return kib >> 10
}

// counted tells how many workspaces are in each state.
func (s *simulation) counted() map[models.WorkspaceState]int64 {
	s.t.Helper()
	counts, err := s.books().CountWorkspaces()
	if err != nil {
		s.t.Fatal(err)
	}
	return counts
}

func (s *simulation) awaitAll(state models.WorkspaceState, n int) {
	s.t.Helper()
	eventually(s.t, scalePatient, func() string {
		if counts := s.counted(); counts[state] != int64(n) {
			return fmt.Sprint(counts)
		}
		return ""
	})
}

// Many workspaces on many nodes, all of them start, run and end, with few
// requests each. Kubernetes' own scheduler places as many on the same nodes,
// for comparison.
func TestScale(t *testing.T) {
	nodes, n := size(t)
	s := newSimulation(t, nodes)
	members, project := s.staff(n)
	plain := s.byScheduler(n)

	before, began := s.requests(), time.Now()
	ids := make([]int64, n)
	atOnce(t, n, func(i int) error {
		m := members[i/perMember]
		var w id
		body := launchBodyIn(project[m.ID], s.env, fmt.Sprint("w", i%perMember))
		body["request"] = map[string]any{"gpus": 1, "cores": tiny.GPUCores, "gpu_memory_mib": tiny.GPUMemoryMiB, "cpu_milli": tiny.CPUMilli, "memory_mib": tiny.MemoryMiB}
		err := m.try("POST", "/workspaces", body, &w)
		ids[i] = w.ID
		return err
	})
	accepted := time.Since(began)
	s.awaitAll(models.StateRunning, n)
	running := time.Since(began)
	placed := s.bound("", "weir.dev/workspace", n).Sub(began)
	s.keepsRules()

	stopping := time.Now()
	atOnce(t, n, func(i int) error { return members[i/perMember].try("POST", workspacePath(ids[i])+"/stop", nil, nil) })
	s.awaitAll(models.StateStopped, n)
	stopped := time.Since(stopping)
	requests := (s.requests() - before) / float64(n)
	eventually(t, scalePatient, func() string { return leftIn(t, s.client, "") })

	rate := func(d time.Duration) float64 { return float64(n) / d.Seconds() }
	t.Logf("%d workspaces on %d nodes with %d GPUs: accepted %.0f/s, on their nodes %.0f/s, running %.0f/s, stopped %.0f/s", n, nodes, nodes*gpusPerNode,
		rate(accepted), rate(placed), rate(running), rate(stopped))
	t.Logf("the same number of pods by kube-scheduler alone: on their nodes %.0f/s; Weir with it has %.1f times that", rate(plain), plain.Seconds()/placed.Seconds())
	t.Logf("%.1f requests to the API server for the life of a workspace; the server had %d MiB at most", requests, s.memory())
	if requests > mostRequests {
		t.Errorf("%.1f requests for each workspace, want at most %d", requests, mostRequests)
	}
}

// keepsRules checks that no GPU is given twice, and that each pod is where
// the books say.
func (s *simulation) keepsRules() {
	s.t.Helper()
	inUse := map[int64]int64{}
	at := map[int64]int64{}
	shares, err := s.books().OpenSharesAmong(store.AllMachines)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, share := range shares {
		inUse[share.DeviceID] += share.Cores
		at[share.ObjectID] = share.DeviceID
		if inUse[share.DeviceID] > 100 {
			s.t.Errorf("device %d lends %d cores", share.DeviceID, inUse[share.DeviceID])
		}
	}
	devices, err := s.books().DevicesAt(store.AllMachines)
	providers, err2 := s.books().Providers()
	list, err3 := s.client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{LabelSelector: "weir.dev/workspace"})
	if err != nil || err2 != nil || err3 != nil {
		s.t.Fatal(err, err2, err3)
	}
	names, node := map[int64]string{}, map[int64]string{}
	for _, p := range providers {
		names[p.ID] = p.Name
	}
	for _, d := range devices {
		node[d.ID] = names[d.ProviderID]
	}
	for _, pod := range list.Items {
		workspace, err := strconv.ParseInt(pod.Labels["weir.dev/workspace"], 10, 64)
		if err != nil || pod.Spec.NodeName != node[at[workspace]] {
			s.t.Errorf("workspace %s is on %s, its share on %s", pod.Labels["weir.dev/workspace"], pod.Spec.NodeName, node[at[workspace]])
		}
	}
}
