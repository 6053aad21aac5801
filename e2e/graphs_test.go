package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weir/models"
	"weir/workspaces/onnx/onnxtest"
)

// graphOf is a graph of two branches that wait for the file go, and one that joins them. Each
// operator adds a line to the file ran.
const graphOf = `name: training
branches:
  - name: text
    operators:
      - {name: read, command: "echo read >> ran", seconds: 1}
      - {name: tokenize, command: "echo tokenize >> ran; while [ ! -e go ]; do sleep 0.1; done", seconds: 2}
  - name: images
    operators:
      - {name: decode, command: "echo decode >> ran", seconds: 3}
  - name: train
    after: [text, images]
    operators:
      - {name: fit, command: "echo fit >> ran", seconds: 1}
`

// graphRun is the run of a graph of a member.
type graphRun struct {
	t    testing.TB
	m    member
	home string
}

// newGraphRun is for the first member of a team, whose directories are there then.
func newGraphRun(team team) graphRun {
	m := team.Members[0]
	m.runs(team.Project, nil, "true").exits(0)
	return graphRun{m.s.t, m, fmt.Sprintf("/notebook/%d/%d", team.Project, m.ID)}
}

// progress is what REST tells of the newest run; empty if it executes no graph yet.
func (g graphRun) progress() (p models.GraphProgress) {
	var page struct {
		Items []struct{ ID int64 } `json:"items"`
	}
	g.m.must("GET", "/runs?limit=1", nil, &page)
	if len(page.Items) > 0 {
		g.m.call("GET", fmt.Sprintf("/runs/%d/graph", page.Items[0].ID), nil, &p)
	}
	return p
}

// reaches waits until so many operators have ended, and fit or another one runs.
func (g graphRun) reaches(ended int, running string) models.GraphProgress {
	g.t.Helper()
	var p models.GraphProgress
	eventually(g.t, starting, func() string {
		p = g.progress()
		n, runs := 0, false
		for _, b := range p.Branches {
			for _, o := range b.Operators {
				if o.Code != nil {
					n++
				}
				runs = runs || o.Operator == running && o.StartedAt != nil && o.EndedAt == nil
			}
		}
		if n == ended && (running == "" || runs) {
			return ""
		}
		return fmt.Sprintf("%d operators have ended: %+v", n, p)
	})
	return p
}

// lines are what the operators have written, each how often.
func (g graphRun) lines() map[string]int {
	g.t.Helper()
	ran := map[string]int{}
	for line := range strings.Lines(g.m.s.reads(g.home + "/ran")) {
		ran[strings.TrimSpace(line)]++
	}
	return ran
}

// weirIn is the id of the process of weir graph run that a server has started, whose arguments
// name a file. Other servers have files of the same name.
func weirIn(s *server, file string) (pid int) {
	t := s.t
	t.Helper()
	eventually(t, starting, func() string {
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range lines {
			words, err := os.ReadFile(name)
			if err == nil && strings.HasPrefix(string(words), "weir\x00graph\x00run\x00") && strings.Contains(string(words), file) {
				if env, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "environ")); !strings.Contains(string(env), "="+s.dir+"/") {
					continue
				}
				pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(name)))
				return ""
			}
		}
		return "no process runs the graph"
	})
	return pid
}

// A graph that is a run goes on when the server is killed, and shows its plan and its times.
// When its own process is killed, another run resumes it: what has ended does not run again.
func TestGraphSurvivesKills(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	team := s.team("planners", share, "ada")
	g := newGraphRun(team)
	s.writes(g.home+"/graph.yaml", graphOf)
	command := []string{"/bin/sh", "-c", "cd " + g.home + ` && exec weir graph run graph.yaml "$@"`, "sh", "--utilization=0", "--journal=" + g.home + "/graph.journal"}

	c := g.m.runs(team.Project, nil, command...)
	g.reaches(2, "tokenize")
	s.kill()
	s.start()
	p := g.reaches(2, "tokenize")
	if p.Name != "training" || p.Attempts != 1 || p.EndedAt != nil || len(p.Branches) != 3 || p.Branches[0].PlannedUntil <= 0 || len(p.Branches[0].CPUs) == 0 {
		t.Errorf("after the server was killed: %+v", p)
	}
	if err := syscall.Kill(weirIn(s, g.home), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.exits(137)
	if ran := g.lines(); ran["read"] != 1 || ran["decode"] != 1 || ran["tokenize"] != 1 || ran["fit"] != 0 {
		t.Errorf("before it was killed: %v", ran)
	}

	s.writes(g.home+"/go", "")
	c = g.m.runs(team.Project, nil, append(command, "--resume")...)
	c.exits(0)
	if ran := g.lines(); ran["read"] != 1 || ran["decode"] != 1 || ran["tokenize"] != 2 || ran["fit"] != 1 {
		t.Errorf("after it was resumed: %v", ran)
	}
	if p = g.progress(); p.Attempts != 2 || p.Code == nil || *p.Code != 0 || p.Branches[0].Operators[0].Attempts != 1 || p.Branches[0].Operators[1].Attempts != 2 {
		t.Errorf("after it was resumed: %+v", p)
	}
	for _, name := range []string{"read", "tokenize", "decode", "fit"} {
		if times := s.reads(g.home + "/graph.times.yaml"); !strings.Contains(times, name+": ") {
			t.Errorf("the time of %s is not kept for the next plan: %s", name, times)
		}
	}
}

// A model in the shared directories is executed in a run, whose progress is that of its branches.
func TestModelInRun(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	team := s.team("vision", share, "ada")
	g := newGraphRun(team)
	s.writes(g.home+"/network.onnx", string(onnxtest.Network()))
	s.writes(g.home+"/image.npy", string(onnxtest.Array(onnxtest.Image(), 1, 2, onnxtest.Side, onnxtest.Side)))

	c := g.m.runs(team.Project, nil, "/bin/sh", "-c", "cd "+g.home+" && exec weir graph run network.onnx --input image.npy --python /usr/bin/python3")
	c.exits(0)
	want := onnxtest.Classes(onnxtest.Image())
	if got := s.reads(g.home + "/network.results/classes.npy"); got != string(onnxtest.Array(want[:], 1, 3)) {
		t.Errorf("%q, want %v; it printed %s", got, want, &c.out)
	}
	if p := g.progress(); p.Name != "network" || len(p.Branches) != 4 || p.Code == nil || *p.Code != 0 || p.Branches[3].Branch != "Add 6" {
		t.Errorf("%+v", p)
	}
}
