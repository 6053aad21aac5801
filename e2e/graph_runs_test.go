package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weir/handlers"
)

// operatorRuns runs a graph whose operators are runs of a project, on a machine with a token.
func (m member) operatorRuns(project int64, dir, text string, args ...string) *command {
	m.s.t.Helper()
	file := filepath.Join(dir, "graph.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		m.s.t.Fatal(err)
	}
	return m.begins(append([]string{"graph", "run", file, "--runs", "--project", fmt.Sprint(project)}, args...)...)
}

// graphOfRuns is two branches side by side, and one that joins them.
const graphOfRuns = `name: pods
branches:
  - {name: text, operators: [{name: read, command: "echo $OMP_NUM_THREADS $WEIR_CPU", seconds: 1}]}
  - {name: images, operators: [{name: decode, command: "echo decoded; exit ${CODE:-0}", seconds: 1}]}
  - {name: train, after: [text, images], operators: [{name: fit, command: "while [ ! -e HOME/go ]; do sleep 0.1; done; exit 7", seconds: 1}]}
`

// Each operator of a graph is a run with the CPUs of its share. If the process of the graph is
// killed, the next one stops what it has left, and runs only what has not ended.
func TestGraphAsRuns(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	team := s.team("pods", share, "ada")
	g := newGraphRun(team)
	m, home, dir := g.m, g.home, t.TempDir()
	text := strings.ReplaceAll(graphOfRuns, "HOME", home)

	c := m.operatorRuns(team.Project, dir, text)
	c.notes("train/fit starts on 2 CPUs")
	eventually(t, starting, func() string { // an operator is noted before its run exists
		live := list[handlers.Run](m.api, "/runs?state=live")
		if len(live) != 1 || !strings.HasPrefix(live[0].Name, "train/fit (graph ") || live[0].Demand.CPUMilli != 2000 {
			return fmt.Sprintf("%d: %+v", len(live), live)
		}
		return ""
	})
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.done
	c = m.operatorRuns(team.Project, dir, text, "--resume")
	c.notes("runs of earlier attempts that were stopped: 1")
	c.notes("train/fit starts on 2 CPUs")
	s.writes(home+"/go", "")
	c.exits(7)
	ran := map[string]int{}
	for _, r := range list[handlers.Run](m.api, "/runs?state=all") {
		name, _, _ := strings.Cut(r.Name, " ")
		ran[name]++
		if name == "text/read" && r.Demand.CPUMilli != 1000 {
			t.Errorf("%+v", r)
		}
	}
	if ran["text/read"] != 1 || ran["images/decode"] != 1 || ran["train/fit"] != 2 {
		t.Error(ran)
	}
	m.runsBesideOthers(team.Project, home, text)
}

// runsBesideOthers runs the graph while another run leaves one whole CPU: operators wait for each
// other, and take fewer.
func (m member) runsBesideOthers(project int64, home, text string) {
	t := m.s.t
	other := m.runs(project, nil, "/bin/sh", "-c", "echo holds; while [ ! -e "+home+"/end ]; do sleep 0.1; done")
	other.prints("holds\n")
	c := m.operatorRuns(project, t.TempDir(), text)
	c.exits(7)
	if !strings.Contains(c.errOut.String(), "weir: waits: ") {
		t.Errorf("nothing has waited: %s", c.errOut.String())
	}
	if last := list[handlers.Run](m.api, "/runs?state=all")[0]; !strings.HasPrefix(last.Name, "train/fit ") || last.Demand.CPUMilli != 1000 {
		t.Errorf("the last operator: %+v", last)
	}
	m.s.writes(home+"/end", "")
	other.exits(0)
}
