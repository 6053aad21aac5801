package handlers

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/workspaces/local"
	"weir/workspaces/runtime"
)

// addRun puts a run of a member into the tables.
func (w *world) addRun(project int64, email string, state models.RunState) int64 {
	w.Helper()
	var r models.Run
	storetest.InTx(w, w.store, func(q *store.Queries) error {
		user, err := q.UserByEmail(email)
		if err != nil {
			return err
		}
		m, err := q.Membership(project, user.ID)
		if err != nil {
			return err
		}
		now := q.Now()
		r = models.Run{ProjectID: project, MemberID: m.ID, UserID: user.ID, EnvironmentID: w.environment, Command: []string{"python", "train.py", "--key=x"}, Name: "python",
			State: state, Demand: models.Demand{CPUMilli: 10, MemoryMiB: 64},
			Target: []models.Parameter{}, Limits: []models.Limit{}, FileAccess: []models.PathAccess{}, Version: 1, RequestedAt: now}
		if state == models.RunEnded {
			r.ExitCode, r.StartedAt, r.EndedAt, r.CPUTimeMs = new(int64(3)), &now, new(now.Add(10*time.Second)), new(int64(100))
		}
		return q.CreateRun(&r, models.Say("Requested: %s.", models.Say("test")))
	})
	return r.ID
}

// Runs are shown, stopped and deleted by the rules of workspaces; only who started one sees
// its arguments.
func TestRuns(t *testing.T) {
	w := newWorld(t)
	live, ended := w.addRun(w.project, "ann@example.org", models.RunRunning), w.addRun(w.project, "ann@example.org", models.RunEnded)
	own := w.get(w.member, "/runs/"+id(ended))
	if own.body["exit_code"] != 3.0 || own.body["cpu_seconds"] != 0.1 || own.body["state"] != "ended" || !strings.Contains(own.raw, "--key=x") || own.body["may_delete"] != true {
		t.Errorf("the user sees %s", own.raw)
	}
	if page := w.page(w.member, "/runs/"+id(ended)); !strings.Contains(page, "CPU time: 0.1\u00a0s; on average, 0.01 of 0.01 CPU.") {
		t.Errorf("the page says nothing of its CPU time: %s", page)
	}
	if foreign := w.get(w.admin, "/runs/"+id(ended)); foreign.status != 200 || strings.Contains(foreign.raw, "--key=x") {
		t.Errorf("an administrator sees %d %s", foreign.status, foreign.raw)
	}
	if a := w.send(w.admin, "GET", "/runs/"+id(ended)+"/log", ""); a.status != 403 {
		t.Errorf("an administrator reads the output: %d %s", a.status, a.raw)
	}
	if a := w.send(w.member, "DELETE", "/runs/"+id(live), ""); a.status != 409 {
		t.Errorf("a run that runs is deleted: %d %s", a.status, a.raw)
	}
	if a := w.send(w.member, "POST", "/runs/"+id(live)+"/stop", ""); a.status != 202 || a.body["state"] != "stopping" {
		t.Errorf("stop: %d %s", a.status, a.raw)
	}
	if a := w.send(w.member, "DELETE", "/runs/"+id(ended), ""); a.status != 204 {
		t.Errorf("delete: %d %s", a.status, a.raw)
	}
	if a := w.get(w.member, "/runs"); strings.Contains(a.raw, `"state":"ended"`) || !strings.Contains(a.raw, `"state":"stopping"`) {
		t.Errorf("the list is %s", a.raw)
	}
}

// watchedRuns are real runs that tell when the output is read.
type watchedRuns struct {
	runtime.Runs
	read func()
}

func (r watchedRuns) Log(state runtime.State, offset int64, limit int) ([]byte, int64, error) {
	r.read()
	return r.Runs.Log(state, offset, limit)
}

// withRuns lets a world run commands.
func (w *world) withRuns(read func()) runtime.Runs {
	w.Helper()
	runs := must(local.NewRuns(local.Config{Dir: w.TempDir(), SandboxUID: 64321, SandboxGID: 64321}))(w)
	w.Cleanup(func() { runs.Close() })
	w.app.Workspaces.Runs = watchedRuns{runs, read}
	return runs
}

// A form starts a run, after it has shown when that would start.
func TestRunForm(t *testing.T) {
	w := newWorld(t)
	w.withRuns(func() {})
	ann := w.visitor("kim@example.org", false)
	role := w.create(w.admin, "/projects/"+id(w.project)+"/roles", `{"name":"runner","permission":"member","limit":`+slice+`}`)
	w.create(w.admin, "/projects/"+id(w.project)+"/members", `{"email":"kim@example.org","role_id":`+id(role)+`}`)
	page := "/runs/new?project_id=" + id(w.project)
	ann.shows(ann.page(200, "GET", "/runs"), `href="/runs/new"`)
	ann.shows(ann.page(200, "GET", page), "Start a run", `name="command"`, `name="workspace_id"`, `!role="alert"`)
	ann.shows(ann.page(200, "GET", page+"&gpus=1&cores=10&command=python+x"), "All 10 GPU cores are available now")
	ann.shows(ann.page(200, "GET", page+"&command=python+%27x"), "has a quote that is not closed")
	ann.shows(ann.page(422, "POST", "/runs", "project_id", id(w.project), "gpus", "1", "cores", "10"), "must name a program")
	ann.shows(ann.page(422, "POST", "/runs", "project_id", id(w.project), "command", "true", "directory", "work"), "must be an absolute path")
	ann.page(303, "POST", "/runs", "project_id", id(w.project), "command", `python 'two words' "$HOME"`, "gpus", "1", "cores", "10",
		"time_limit_minutes", "30", "directory", "/home/jovyan/work")
	r := must(w.store.Read(w.Context()).Run(store.AllProjects, 1))(w)
	if strings.Join(r.Command, "|") != "python|two words|$HOME" || r.TimeLimitSeconds != 1800 || r.Demand.Cores != 10 || r.Directory != "/home/jovyan/work" || r.State != models.RunStarting {
		t.Errorf("the run is %+v", r.Run)
	}
	ann.shows(ann.page(200, "GET", "/runs/1"), "Requested: ", "remain there", "run-output:1", "/home/jovyan/work")
	if a := w.get(w.admin, "/runs/1"); !strings.Contains(a.raw, `"events":[{"at":`) {
		t.Errorf("its history is missing in %s", a.raw)
	}

	ws := w.create(w.member, "/workspaces", `{"project_id":`+id(w.project)+`}`)
	hasTexts(t, w.page(w.member, path("workspaces", ws)), "Run a command", "/runs/new?workspace_id="+id(ws))
	hasTexts(t, w.page(w.member, "/runs/new?workspace_id="+id(ws)), "notebook · ")
	member := w.want(200, w.member, "POST", "/runs/preview", `{"workspace_id":`+id(ws)+`,"command":["true"],"request":{"gpus":1,"cores":10}}`)
	if d := member.body["decision"].(map[string]any); d["outcome"] != "granted" || len(member.body["problems"].([]any)) != 0 {
		t.Errorf("the preview is %s", member.raw)
	}
	large := w.want(200, w.member, "POST", "/runs/preview", `{"workspace_id":`+id(ws)+`,"command":["true"],"request":{"gpus":90,"cores":100}}`)
	if len(large.body["problems"].([]any)) == 0 {
		t.Errorf("the preview of too much is %s", large.raw)
	}
	w.want(422, w.manager, "POST", "/runs/preview", `{"workspace_id":`+id(ws)+`,"command":["true"]}`)
}

// startRun starts a run of a shell script that sees a directory as /gate.
func (w *world) startRun(runs runtime.Runs, gate, script string) (run int64, state runtime.State) {
	w.Helper()
	run = w.addRun(w.project, "ann@example.org", models.RunRunning)
	spec := runtime.Spec{Workspace: run, Generation: 1, Command: []string{"/bin/sh"}, Mounts: []models.Mount{{Source: gate, Target: "/gate"}}}
	state, err := runs.Start(w.Context(), run, spec, []string{"/bin/sh", "-c", script})
	if err != nil {
		w.Fatal(err)
	}
	storetest.InTx(w, w.store, func(q *store.Queries) error {
		r, err := q.LockRun(run)
		if err != nil {
			return err
		}
		r.RuntimeState = state
		return q.TransitionRun(&r, models.RunRunning, models.Text{})
	})
	return run, state
}

// Who waits for the output of a run does not get it after the right to read it has ended.
func TestOutputAfterARevocation(t *testing.T) {
	w := newWorld(t)
	var once sync.Once
	reading := make(chan struct{})
	runs := w.withRuns(func() { once.Do(func() { close(reading) }) })
	gate := t.TempDir()
	run, _ := w.startRun(runs, gate, "until [ -e /gate/go ]; do sleep 0.1; done; echo secret")
	answered := make(chan answer)
	go func() { answered <- w.send(w.member, "GET", "/runs/"+id(run)+"/log?wait_seconds=25", "") }()
	<-reading
	user := must(w.store.Read(w.Context()).UserByEmail("ann@example.org"))(w)
	w.want(200, w.admin, "PUT", "/users/"+id(user.ID), `{"name":"Ann","admin":false,"disabled":true}`)
	if err := os.WriteFile(filepath.Join(gate, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if a := <-answered; a.status < 400 || strings.Contains(a.raw, "secret") {
		t.Errorf("the output is %d %q", a.status, a.raw)
	}
}
