//go:build cluster

package e2e

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"weir/handlers"
)

// graphOfPods is a graph whose operators say how many CPUs their pod may use.
const graphOfPods = `name: pods
branches:
  - {name: text, operators: [{command: "cd /sys/fs/cgroup; cat cpu.max 2>&- || echo $(cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us)", seconds: 1}]}
  - {name: images, operators: [{command: "cd /sys/fs/cgroup; cat cpu.max 2>&- || echo $(cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us)", seconds: 1}]}
  - {name: train, after: [text, images], operators: [{command: "cd /sys/fs/cgroup; cat cpu.max 2>&- || echo $(cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us)", seconds: 1}]}
`

// runsInCluster has a member run commands in the cluster, as on one machine: under a server
// that is killed, to their end by themselves, by a stop, by the memory limit and where the
// image is missing. In the end there is no pod, and the shares are free.
func (m member) runsInCluster(client *kubernetes.Clientset, project, env int64) {
	s, t := m.s, m.s.t
	home, namespace := fmt.Sprintf("/notebook/%d/%d", project, m.ID), fmt.Sprintf("weir-p-%d", project)
	in := []string{"--environment", fmt.Sprint(env)}
	c := m.runs(project, in, "/bin/sh", "-c", `echo "begun on $WEIR_GPU_CORES"; while [ ! -e `+home+`/go ]; do sleep 0.1; done; echo done; exit 9`)
	begun := fmt.Sprintf("begun on %d\n", share.GPUCores)
	c.prints(begun)
	s.kill()
	s.writes(home+"/go", "")
	s.start()
	c.exits(9)
	if got := c.out.String(); got != begun+"done\n" {
		t.Errorf("it printed %q", got)
	}

	stopped := m.runs(project, in, "/bin/sh", "-c", "echo waits; exec sleep 600")
	stopped.prints("waits\n")
	m.must("POST", fmt.Sprintf("/runs/%d/stop", list[handlers.Run](m.api, "/runs")[0].ID), nil, nil)
	stopped.exits(143)
	graph := m.operatorRuns(project, t.TempDir(), graphOfPods, append(in, "--cpus", "2")...)
	graph.exits(0)
	for _, line := range []string{"text | 100000 100000\n", "images | 100000 100000\n", "train | 200000 100000\n"} { // quota and period, in µs
		if !strings.Contains(graph.out.String(), line) {
			t.Errorf("the graph printed %q and %q, not %q", graph.out.String(), graph.errOut.String(), line)
		}
	}
	greedy := m.runs(project, in, "python3", "-c", "x = b'x' * (1 << 30)")
	greedy.exits(137)
	if !strings.Contains(greedy.errOut.String(), "memory limit") {
		t.Errorf("it says %q", greedy.errOut.String())
	}
	eventually(t, gone, func() string {
		pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "weir.dev/run"})
		if used := m.inUse(); err != nil || len(pods.Items) > 0 || len(used) > 0 {
			return fmt.Sprintf("%d pods are left, shares are in use by %v, %v", len(pods.Items), used, err)
		}
		return ""
	})
	for _, r := range list[handlers.Run](m.api, "/runs?state=all") {
		log, _ := s.shell(m.token).run(0, "runs", "log", fmt.Sprint(r.ID))
		if r.State != "ended" || len(r.Shares) != 0 || strings.HasPrefix(log, "begun") && log != begun+"done\n" {
			t.Errorf("%+v, its log is %q", r, log)
		}
	}
}

// readsOnly starts a workspace whose home directory is mounted read-only.
func (m member) readsOnly(project, env int64) {
	s := m.s
	path := fmt.Sprintf("/notebook/%d/%d", project, m.ID)
	s.api(s.admin()).must("PUT", fmt.Sprintf("/projects/%d/files/rules", project), map[string]any{"path": path, "subject": "project", "access": "read"}, nil)
	w := m.await(m.launch(project, env, "reader"), "running", starting)
	nb := m.open(w.ID)
	if got := executeCell(s.t, nb.client, nb.origin, "open('/home/jovyan/new', 'w')"); !strings.Contains(got, "Read-only file system") {
		s.t.Errorf("a cell that writes says %q", got)
	}
	s.stopWorkspaces()
}
