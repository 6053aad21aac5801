package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// start names one start of one workspace.
type start struct{ workspace, generation int64 }

// sandboxes finds what runs for a server, by the mark that every sandbox has
// in its command line. Process ids are sorted.
func (s *server) sandboxes() map[start][]int {
	mark := regexp.MustCompile(regexp.QuoteMeta(s.dir) + `/run/ws-(\d+)-(\d+)`)
	found := map[start][]int{}
	for pid, command := range processesOf(s.dir) {
		m := mark.FindStringSubmatch(command)
		if m == nil {
			continue
		}
		workspace, _ := strconv.ParseInt(m[1], 10, 64)
		generation, _ := strconv.ParseInt(m[2], 10, 64)
		k := start{workspace, generation}
		found[k] = append(found[k], pid)
		slices.Sort(found[k])
	}
	return found
}

// jupyter finds the notebook process of a workspace: the child of a sandbox's
// process that runs the notebook program.
func (s *server) jupyter(workspace int64) int {
	s.t.Helper()
	for k, pids := range s.sandboxes() {
		if k.workspace != workspace {
			continue
		}
		for _, pid := range pids {
			for _, child := range childrenOf(pid) {
				b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
				if err == nil && !bytes.Contains(b, []byte(s.dir)) && bytes.Contains(b, []byte("jupyter")) {
					return child
				}
			}
		}
	}
	s.t.Fatalf("workspace %d has no notebook process", workspace)
	return 0
}

func childrenOf(pid int) (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		for _, field := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(field); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// awaitAgreement polls until the books and the machine agree: a process for
// every workspace that is said to hold something, and none besides; a share
// for each of them, and none besides; and each project's sum is theirs.
func (s *server) awaitAgreement(within time.Duration) {
	s.t.Helper()
	eventually(s.t, within, s.disagreement)
}

func (s *server) disagreement() string {
	s.t.Helper()
	admin := s.api(s.admin())
	holding, cores := map[int64]bool{}, map[int64]int64{}
	for _, w := range list[workspace](admin, "/workspaces") {
		if w.State == "starting" || w.State == "running" || w.State == "stopping" {
			holding[w.ID] = true
			cores[w.ProjectID] += share.GPUCores
		}
	}
	ran := map[int64]bool{}
	for k := range s.sandboxes() {
		if ran[k.workspace] {
			return fmt.Sprintf("workspace %d runs twice", k.workspace)
		}
		ran[k.workspace] = true
		if !holding[k.workspace] {
			return fmt.Sprintf("workspace %d runs, and no row says so", k.workspace)
		}
	}
	inUse := admin.inUse()
	for w := range holding {
		if !ran[w] {
			return fmt.Sprintf("workspace %d should run and does not", w)
		}
		if inUse[w] != share.GPUCores {
			return fmt.Sprintf("workspace %d holds %d cores", w, inUse[w])
		}
	}
	if len(inUse) != len(holding) {
		return fmt.Sprintf("the pool says %v are in use, the list says by %v", inUse, holding)
	}
	for _, p := range admin.projects() {
		if p.InUse.GPUCores != cores[p.ID] {
			return fmt.Sprintf("project %d holds %d cores, its workspaces %d", p.ID, p.InUse.GPUCores, cores[p.ID])
		}
	}
	return ""
}

// project as the API shows it.
type project struct {
	ID    int64     `json:"id"`
	Quota resources `json:"quota"`
	InUse resources `json:"in_use"`
}

func (a api) projects() []project {
	a.s.t.Helper()
	return list[project](a, "/projects")
}

// standIn is a small program in place of Jupyter: it answers on the socket
// where a notebook would, and says which headers reached it.
const standIn = `#!/usr/bin/python3
import http.server, json, socketserver, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = json.dumps({"path": self.path, "headers": self.headers.items()}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
` + onSocket

// onSocket ends a program in place of Jupyter: its Handler answers where a notebook would.
const onSocket = `
    def address_string(self):
        return "proxy"
    def log_message(self, *args):
        pass

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

if len(sys.argv) > 1: # in a pod
    http.server.ThreadingHTTPServer(("", 8888), Handler).serve_forever()
Server("/run/weir/jupyter.sock", Handler).serve_forever()
`

// standIn adds the stand-in to the catalog and returns its id there.
func (s *server) standIn(t testing.TB) int64 { return s.program(t, "Stand-in", standIn) }

// program adds an environment to the catalog that runs a program in place of Jupyter.
func (s *server) program(t testing.TB, name, text string) int64 {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bin")
	program := filepath.Join(dir, "stand-in")
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = os.WriteFile(program, []byte(text), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	var env id
	s.api(s.admin()).must("POST", "/environments", map[string]any{"name": name, "language": "none", "language_version": "1",
		"command": []string{program}, "default_path": "/"}, &env)
	return env.ID
}
