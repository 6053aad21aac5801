//go:build cluster

package e2e

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// In a cluster, the GPU kernel is a pod beside that of its notebook, and what reaches it comes over
// the network. In its terminal, weir run needs neither a token nor a program in the image.
func TestGPUKernelInCluster(t *testing.T) {
	k, client := newCluster(t)
	node, err := client.CoreV1().Nodes().Get(t.Context(), k.Node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(node.Status.Addresses[0].Address, strconv.Itoa(freePort(t)))
	o := inCluster(t, k)
	o.args = append(o.args, "--workspaces-listen", address, "--workspaces-url", "http://"+address)
	s := newServer(t, o)
	env := s.jupyterIn(k)
	s.nodeLends(k)
	team := s.team("notebooks", share.times(2), "ada")
	ada := team.Members[0]
	var w id
	ada.must("POST", "/workspaces", map[string]any{"project_id": team.Project, "environment_id": env, "name": "cpu",
		"request": map[string]any{"gpus": 0, "cpu_milli": 500, "memory_mib": 256}}, &w)
	ada.await(w.ID, "running", starting)
	n := ada.open(w.ID)
	if out := n.execute(`import subprocess as s; r = s.run(["weir", "run", "--cpu", "100", "--memory", "64", "--", "sh", "-c", "pwd; exit 3"], capture_output=True, text=True); print(r.stdout, r.stderr, r.returncode)`); out != "/home/jovyan\n  3\n" {
		t.Errorf("weir run in a terminal: %q", out)
	}
	kernel := n.gpuKernel()
	n.executeIn(kernel, fmt.Sprintf("%%gpu 1x%d %d", share.GPUCores, share.GPUMemoryMiB))
	if out := n.executeIn(kernel, "x = 41\nprint(x + 1)"); !strings.HasSuffix(out, "42\n") {
		t.Fatalf("the first cell printed %q", out)
	}
	runs := ada.liveRuns(w.ID)
	if len(runs) != 1 || len(runs[0].Shares) != 1 || runs[0].Demand.Cores != share.GPUCores || runs[0].Address != "" {
		t.Fatalf("the kernel's runs: %+v", runs)
	}
	if out := n.executeIn(kernel, "import os; print(os.getcwd(), sorted(v for v in os.environ if v.startswith('WEIR_API') or v == 'WEIR_RUN_PORT'))"); out != "/home/jovyan ['WEIR_RUN_PORT']\n" {
		t.Errorf("the run has %q", out)
	}
	s.kill() // the run goes on, and the kernel too
	s.start()
	n = ada.open(w.ID)
	begun := fmt.Sprintf("/notebook/%d/%d/begun", team.Project, ada.ID)
	interrupted := n.interrupt(kernel, s.onDisk(begun), "print(x); import time; open('"+begun+"', 'w').close(); time.sleep(3600)")
	if !strings.HasPrefix(interrupted, "41\n") || !strings.Contains(interrupted, "KeyboardInterrupt") {
		t.Errorf("the interrupted cell printed %q", interrupted)
	}
	if out := n.executeIn(kernel, "%gpu release"); !strings.Contains(out, "given back") {
		t.Errorf("the release says %q", out)
	}
	ada.noRuns(w.ID)
	if out := n.executeIn(kernel, "print('x' in globals())"); !strings.HasSuffix(out, "False\n") {
		t.Errorf("after the release, a cell printed %q", out)
	}
	s.stopWorkspaces()
	eventually(t, gone, func() string { return leftIn(t, client, fmt.Sprintf("weir-p-%d", team.Project)) })
}
