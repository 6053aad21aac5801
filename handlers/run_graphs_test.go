package handlers

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/workspaces/graph"
	"weir/workspaces/graph/journal"
	"weir/workspaces/runtime"
)

// endedRun is a run of a script that has written a file as its journal and ended.
func (w *world) endedRun(runs runtime.Runs, journal []byte) int64 {
	w.Helper()
	gate := w.TempDir()
	if err := os.WriteFile(filepath.Join(gate, "journal"), journal, 0o644); err != nil {
		w.Fatal(err)
	}
	run, state := w.startRun(runs, gate, "cp /gate/journal $WEIR_GRAPH_JOURNAL")
	deadline, tick := time.Now().Add(time.Minute), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		s, err := runs.Poll(w.Context(), state)
		if err != nil || time.Now().After(deadline) {
			w.Fatalf("it has not ended: %v", err)
		}
		if s.Ended {
			return run
		}
	}
}

// The progress of a graph is shown to who started the run, by page and by program, with the
// plan beside what was measured. Whatever else the run has written is no graph.
func TestRunGraph(t *testing.T) {
	w := newWorld(t)
	runs := w.withRuns(func() {})
	g := graph.Graph{Name: "training", Branches: []graph.Branch{{Name: "text", Operators: []graph.Operator{{Name: "read", Seconds: 2}, {Name: "tokenize", Seconds: 2}}},
		{Name: "images", Operators: []graph.Operator{{Name: "decode", Seconds: 3}}}}}
	plan, err := graph.Plan(g, graph.Machine(4), graph.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	revised := plan
	revised.Mode, revised.Utilization = models.GraphSerial, 80
	file := filepath.Join(t.TempDir(), "journal")
	j, _, err := journal.Open(file, false)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(1_700_000_000, 0).UTC()
	for _, e := range []journal.Event{journal.Begin(g, "one", start, plan), {Kind: journal.Start, At: start, Branch: "text", Operator: "read", CPUs: []int{2}},
		{Kind: journal.End, At: start.Add(1500 * time.Millisecond), Branch: "text", Operator: "read", Seconds: 1.5},
		{Kind: journal.Sample, At: start.Add(time.Second), Utilization: 62}, {Kind: journal.Plan, At: start.Add(2 * time.Second), Plan: &revised},
		{Kind: journal.Start, At: start, Branch: "images", Operator: "decode"}, {Kind: journal.End, At: start.Add(4 * time.Second), Branch: "images", Operator: "decode", Code: 7}} {
		if err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	run := w.endedRun(runs, content)
	at := "/runs/" + id(run) + "/graph"
	p := w.want(200, w.member, "GET", at, "").body
	text, images := p["branches"].([]any)[0].(map[string]any), p["branches"].([]any)[1].(map[string]any)
	if p["name"] != "training" || p["attempts"] != 1.0 || p["mode"] != "serial" || len(p["plans"].([]any)) != 2 || p["samples"].([]any)[0].(map[string]any)["utilization"] != 62.0 || p["ended_at"] != nil || p["interrupted"] != false || text["ended_at"] != nil || text["planned_until_seconds"] != 4.0 || images["failed"] != true {
		t.Errorf("%v", p)
	}
	ann := w.as("ann@example.org")
	w.member = w.token("ann@example.org") // signing in has ended the other one
	ann.shows(ann.page(200, "GET", "/runs/"+id(run)), "Task graph of training", "Branches run in parallel.", "Operators run one after another.", "Utilization: maximum 80%.", "Second threshold 50%", "2023-11-14 22:13 UTC", "1 of 2", "2.0\u00a0s – 4.0\u00a0s", "2.0\u00a0s – 3.5\u00a0s", ">failed<", ">running<", "1.5\u00a0s")
	storetest.InTx(w, w.store, func(q *store.Queries) error {
		r, err := q.LockRun(run)
		if err != nil {
			return err
		}
		r.State, r.ExitCode, r.EndedAt = models.RunEnded, new(int64(137)), new(q.Now())
		return q.TransitionRun(&r, models.RunRunning, models.Text{})
	})
	if p := w.want(200, w.member, "GET", at, "").body; p["interrupted"] != true {
		t.Errorf("%v", p)
	}
	ann.shows(ann.page(200, "GET", "/runs/"+id(run)), ">interrupted<", "!>running<")
	const training = "branches: [{name: text, operators: [{name: read, seconds: 100}]}, {name: images, operators: [{name: decode, seconds: 3}]}]"
	plan4 := func(token, graph string, run int64, status int) map[string]any {
		return w.want(status, token, "POST", "/graphs/plan", fmt.Sprintf(`{"graph":%q,"run_id":%d,"cpus":4}`, graph, run)).body
	}
	if p := plan4(w.member, training, run, 200); p["serial_seconds"] != 4.5 { // what has failed is not measured
		t.Errorf("%v", p)
	}
	for run, graph := range map[int64]string{run: "branches: [{name: other, operators: [{}]}]", run + 1000: training} {
		if fields := w.problem(w.want(422, w.member, "POST", "/graphs/plan", fmt.Sprintf(`{"graph":%q,"run_id":%d,"cpus":4}`, graph, run))); fields["run_id"] == "" {
			t.Errorf("run %d: %v", run, fields)
		}
	}
	plan4(w.admin, training, run, 403)
	plan4(w.stranger, training, run, 422)
	ann.shows(ann.page(200, "GET", "/runs/"+id(run)), "/graphs?run_id="+id(run))
	ann.shows(ann.page(200, "GET", "/graphs?run_id="+id(run)), `value="`+id(run)+`"`)
	ann.shows(ann.page(200, "POST", "/graphs", "graph", training, "run_id", id(run), "cpus", "4", "utilization", "0"), "4.5\u00a0s")
	ann.shows(ann.page(422, "POST", "/graphs", "graph", training, "run_id", "x", "cpus", "4", "utilization", "0"), `id="f-run_id-error"`)
	w.want(403, w.admin, "GET", at, "")
	w.want(404, w.stranger, "GET", at, "")
	other := w.endedRun(runs, []byte("not a journal\n"))
	w.want(404, w.member, "GET", "/runs/"+id(other)+"/graph", "")
	ann.shows(ann.page(200, "GET", "/runs/"+id(other)), "!Task graph of", "!Branches ended")
	w.want(404, w.member, "GET", "/runs/"+id(w.addRun(w.project, "ann@example.org", models.RunQueued))+"/graph", "")
}
