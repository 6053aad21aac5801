package handlers

import (
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
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
			State: state, Demand: models.Demand{CPUMilli: 10, MemoryMiB: 64}, Target: []models.Parameter{}, Limits: []models.Limit{}, Granted: []models.PathAccess{}, Version: 1, RequestedAt: now}
		if state == models.RunEnded {
			r.ExitCode, r.StartedAt, r.EndedAt = new(int64(3)), &now, &now
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
	if own.body["exit_code"] != 3.0 || own.body["state"] != "ended" || !strings.Contains(own.raw, "--key=x") || own.body["may_delete"] != true {
		t.Errorf("the user sees %s", own.raw)
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
	if a := w.send(w.member, "POST", "/runs", `{"project_id":`+id(w.project)+`,"command":["true"]}`); a.status != 409 || !strings.Contains(a.raw, "local runtime") {
		t.Errorf("without runs: %d %s", a.status, a.raw)
	}
}
