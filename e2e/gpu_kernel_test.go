package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weir/handlers"
)

// cpuOnly launches a workspace without GPUs and waits until it runs.
func (m member) cpuOnly(project int64, name string) int64 {
	m.s.t.Helper()
	var w id
	m.must("POST", "/workspaces", map[string]any{"project_id": project, "name": name,
		"request": map[string]any{"gpus": 0, "cpu_milli": 500, "memory_mib": 256}}, &w)
	return m.await(w.ID, "running", starting).ID
}

// gpuKernel starts the kernel that holds a GPU only while it computes.
func (n notebook) gpuKernel() string {
	n.t.Helper()
	status, body := n.call("POST", "/api/kernels", `{"name":"python-gpu"}`)
	var kernel struct{ ID string }
	if err := json.Unmarshal([]byte(body), &kernel); err != nil || status != http.StatusCreated {
		n.t.Fatalf("a GPU kernel: %d %s", status, body)
	}
	return kernel.ID
}

// liveRuns are the runs of a workspace that have not ended.
func (m member) liveRuns(workspace int64) []handlers.Run {
	m.s.t.Helper()
	return list[handlers.Run](m.api, fmt.Sprintf("/runs?state=live&workspace_id=%d", workspace))
}

// noRuns waits until no run of a workspace is left.
func (m member) noRuns(workspace int64) {
	m.s.t.Helper()
	eventually(m.s.t, gone, func() string {
		if runs := m.liveRuns(workspace); len(runs) > 0 {
			return fmt.Sprintf("run %d is %s", runs[0].ID, runs[0].State)
		}
		return ""
	})
}

// forwarder is the process of the GPU kernel that Jupyter has started.
func (s *server) forwarder() (pids []int) {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		command, _ := os.ReadFile(file) // it may have ended
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && strings.Contains(string(command), "weir_kernel.py") && strings.Contains(string(env), s.dir+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A notebook without GPUs has a kernel that holds a share from its first cell until it is
// idle, and again from the next cell on. In its terminal, weir run needs no token.
func TestGPUKernel(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{args: []string{"--kernel-idle-timeout", "1m"}})
	team := s.team("notebooks", share.times(3), "ada")
	ada := team.Members[0]
	cpu, other := ada.cpuOnly(team.Project, "cpu"), ada.cpuOnly(team.Project, "other")
	n := ada.open(cpu)
	if out := n.execute(`import os, subprocess as s; r = s.run(["weir", "run", "--cpu", "100", "--memory", "64", "--", "sh", "-c", "pwd; exit 3"], cwd=(os.makedirs("proj"), "proj")[1], capture_output=True, text=True); print(r.stdout, r.stderr, r.returncode)`); out != "/home/jovyan/proj\n  3\n" {
		t.Errorf("weir run in a terminal: %q", out)
	}
	var foreign handlers.Run
	ada.must("POST", "/runs", map[string]any{"workspace_id": other, "command": []string{"true"}, "request": map[string]any{"cpu_milli": 100, "memory_mib": 64}}, &foreign)
	probe := `
import http.client, socket
def ask(method, path, body=None, **headers):
    c = http.client.HTTPConnection("localhost"); c.sock = socket.socket(socket.AF_UNIX); c.sock.connect("/run/weir-api/api.sock")
    c.request(method, path, body, headers); r = c.getresponse(); r.read(); return r.status
print(ask("GET", "/api/v1/runs"), ask("GET", "/api/v1/users"), ask("GET", "/"), ask("GET", "/api/v1/projects"), ask("GET", "/api/v1/runs/%[1]d"),
  ask("POST", "/api/v1/runs/%[1]d/stop", "{}"), ask("POST", "/api/v1/runs", '{"workspace_id":%[2]d,"command":["true"]}', **{"Content-Type": "application/json"}),
  ask("POST", "/api/v1/workspaces/%[2]d/stop"), ask("GET", "/api/v1/runs/../users"))`
	if out := n.execute(fmt.Sprintf(probe, foreign.ID, other)); !strings.HasPrefix(out, "200 403 403 403 404 404 422 403 30") {
		t.Errorf("the socket answers %s", out)
	}
	kernel := n.gpuKernel()
	if runs := ada.liveRuns(cpu); len(runs) != 0 {
		t.Errorf("%d runs before the first cell", len(runs))
	}
	if out := n.executeIn(kernel, fmt.Sprintf("%%gpu 1x%d %d", share.GPUCores, share.GPUMemoryMiB)); !strings.Contains(out, "asks for 1 GPU with 50 cores") {
		t.Errorf("the choice of a share says %q", out)
	}
	if out := n.executeIn(kernel, "x = 41\nprint(x + 1)"); !strings.HasSuffix(out, "42\n") {
		t.Fatalf("the first cell printed %q", out)
	}
	first := ada.liveRuns(cpu)
	if len(first) != 1 || len(first[0].Shares) != 1 || first[0].Demand.Cores != share.GPUCores || first[0].Name != "Python (GPU)" {
		t.Fatalf("the kernel's runs: %+v", first)
	}
	s.kill() // the run goes on, and the kernel too
	s.start()
	n = ada.open(cpu)
	if out := n.executeIn(kernel, "print(x)"); out != "41\n" {
		t.Errorf("after a restart of the server, a cell printed %q", out)
	}
	begun := fmt.Sprintf("/notebook/%d/%d/begun", team.Project, ada.ID)
	if out := n.interrupt(kernel, s.onDisk(begun), "import time; open('"+begun+"', 'w').close(); time.sleep(3600)"); !strings.Contains(out, "KeyboardInterrupt") {
		t.Errorf("the interrupted cell printed %q", out)
	}
	ada.noRuns(cpu) // idle for a minute
	if w := ada.workspace(cpu); w.State != "running" {
		t.Errorf("the workspace is %s", w.State)
	}
	if out := n.executeIn(kernel, "print('x' in globals())"); !strings.HasSuffix(out, "False\n") || !strings.Contains(out, "Idle for 1 minute") {
		t.Errorf("the first cell after the GPU was given back printed %q", out)
	}
	if runs := ada.liveRuns(cpu); len(runs) != 1 || runs[0].ID == first[0].ID {
		t.Errorf("the second run: %+v", runs)
	}
	pids := s.forwarder()
	if len(pids) != 1 {
		t.Fatalf("the kernel is %d processes", len(pids))
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != os.ErrProcessDone {
			t.Fatal(err)
		}
	}
	ada.noRuns(cpu)
	if last := list[handlers.Run](ada.api, fmt.Sprintf("/runs?workspace_id=%d", cpu))[0]; !strings.Contains(last.Reason, "renewed") {
		t.Errorf("without its kernel, the run ended: %s", last.Reason)
	}
	if out := n.executeIn(n.gpuKernel(), "print(6 * 7)"); !strings.HasSuffix(out, "42\n") {
		t.Errorf("another kernel printed %q", out)
	}
	ada.must("POST", workspacePath(cpu)+"/stop", nil, nil)
	ada.noRuns(cpu)
	if last := list[handlers.Run](ada.api, fmt.Sprintf("/runs?workspace_id=%d", cpu))[0]; last.Reason != "Its workspace was stopped." {
		t.Errorf("with its workspace, the run ended: %s", last.Reason)
	}
	ada.await(cpu, "stopped", gone)
	if left, err := filepath.Glob(s.dir + "/run/ws-*"); err != nil || len(left) != 1 {
		t.Errorf("after the stop, the sockets are %v, %v", left, err)
	}
}

// interrupt executes code in a kernel until it has made a file, and interrupts it; it returns what was printed.
func (n notebook) interrupt(kernel, begun, code string) string {
	n.t.Helper()
	printed := make(chan string, 1)
	go func() { printed <- n.executeIn(kernel, code) }()
	eventually(n.t, starting, func() string {
		if _, err := os.Stat(begun); err != nil {
			return err.Error()
		}
		return ""
	})
	if status, body := n.call("POST", "/api/kernels/"+kernel+"/interrupt", ""); status != http.StatusNoContent {
		n.t.Errorf("interrupt: %d %s", status, body)
	}
	return <-printed
}
