package handlers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/workspaces"
)

// A manager finds everybody's workspaces, stops several of them with a reason, and their
// owner is told.
func TestStopWorkspaces(t *testing.T) {
	w := newWorld(t)
	launch := func(name string) int64 {
		return w.create(w.member, "/workspaces", `{"name":"`+name+`","project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`)
	}
	first, second := launch("first"), launch("second")
	w.running(first)
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		running, err := q.Workspace(store.AllProjects, first)
		running.WorkedAt = new(q.Now().Add(-3 * time.Hour))
		if err != nil {
			return err
		}
		measured := models.WorkspaceTelemetry{WorkspaceID: first, At: q.Now(), Kernels: 2, BusyKernels: 1}
		return errors.Join(q.SaveIdleness(running, false), q.AddWorkspaceTelemetry([]models.WorkspaceTelemetry{measured}, q.Now().Add(-time.Hour)))
	})
	for query, want := range map[string]int{"": 2, "?q=FIRST": 1, "?q=vision": 2, "?q=eve@": 0, "?q=%25": 0, "?idle_hours=3": 1, "?idle_hours=4": 0, "?q=first&idle_hours=3": 1,
		"?state=running": 1, "?state=starting": 1, "?state=queued": 0, "?provider_id=1": 2, "?provider_id=4711": 0, "?project_id=" + id(w.project): 2} {
		if list := w.get(w.manager, "/workspaces"+query); len(list.body["items"].([]any)) != want {
			t.Errorf("%q finds %s", query, list.raw)
		}
	}
	mia := w.visitor("mia@example.org", true) // an administrator
	mia.shows(mia.page(200, "GET", "/workspaces?owner=all&q=second"), "second", "!first")
	mia.shows(mia.page(200, "GET", "/workspaces?owner=all&state=running&project_id="+id(w.project)), "first", "!second")
	mia.shows(mia.page(200, "GET", "/workspaces?owner=all&provider_id=1"), "first", "second", "Only workspaces that use GPUs of one machine.")
	mia.shows(mia.page(200, "GET", "/workspaces?owner=all&provider_id=4711"), "No matching workspaces.", "!first")
	mia.shows(mia.page(200, "GET", "/workspaces?owner=all&state=queued"), "Show all", "!first")
	mia.shows(mia.page(200, "GET", "/workspaces?owner=all&project_id=4711"), "No matching workspaces.", "№ 4711")
	mia.shows(mia.page(200, "GET", "/workspaces/stop?id="+id(first)+"&id="+id(second)), "first", "second", "2 kernels are running; 1 busy.", "Reason")
	mia.shows(mia.page(200, "GET", "/workspaces/stop?id="+id(first)), "2 kernels are running; 1 busy.")
	mia.shows(mia.page(200, "GET", "/workspaces/stop"), "No workspace is selected.")

	both := `{"ids":[` + id(first) + `,` + id(second) + `],"reason":"maintenance at noon"}`
	for body, field := range map[string]string{`{"ids":[]}`: "ids", `{"ids":[` + strings.Repeat("1,", 200) + `1]}`: "ids",
		`{"ids":[` + id(first) + `],"reason":"` + strings.Repeat("x", 501) + `"}`: "reason"} {
		if fields := w.problem(w.want(422, w.manager, "POST", "/workspaces/stop", body)); fields[field] == "" {
			t.Errorf("%.40s: %s is not named: %v", body, field, fields)
		}
	}
	w.problem(w.want(404, w.manager, "POST", "/workspaces/stop", `{"ids":[4711,4712]}`))
	if list := w.get(w.manager, "/workspaces"); len(list.body["items"].([]any)) != 2 {
		t.Errorf("after the refusals: %s", list.raw)
	}
	stopped := w.want(202, w.manager, "POST", "/workspaces/stop", both)
	if got := stopped.body["stopped"].([]any); len(got) != 2 {
		t.Errorf("stopped: %s", stopped.raw)
	}
	if again := w.want(202, w.manager, "POST", "/workspaces/stop", both); len(again.body["stopped"].([]any)) != 0 {
		t.Errorf("stopped again: %s", again.raw)
	}
	if told := w.get(w.member, "/notifications"); strings.Count(told.raw, "maintenance at noon") != 2 {
		t.Errorf("the owner is told %s", told.raw)
	}
	if told := w.get(w.manager, "/notifications"); strings.Contains(told.raw, "maintenance") {
		t.Errorf("the manager is told %s", told.raw)
	}
}

// What can be stopped is stopped, and the rest is named.
func TestStopWorkspacesInPart(t *testing.T) {
	w := newWorld(t)
	first := w.create(w.member, "/workspaces", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`)
	w.running(first)
	answer := w.want(202, w.manager, "POST", "/workspaces/stop", `{"ids":[4711,`+id(first)+`]}`)
	failed := answer.body["failed"].([]any)
	if got := answer.body["stopped"].([]any); len(got) != 1 || len(failed) != 1 {
		t.Fatalf("stopped: %s", answer.raw)
	}
	if f := failed[0].(map[string]any); f["id"] != 4711.0 || f["reason"] != "The workspace was not found." {
		t.Errorf("failed: %s", answer.raw)
	}
	message := stoppedAllMessage(workspaces.Stopped{Workspaces: make([]models.Workspace, 1),
		Failed: []workspaces.StopFailure{{ID: 4711, Reason: models.NotFound("workspace").Message}}}).String()
	if message != "1 workspace is stopping. Workspace 4711 was not stopped: The workspace was not found." {
		t.Errorf("the page tells %q", message)
	}
}
