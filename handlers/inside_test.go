package handlers

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/workspaces"
)

// What a program in a pod sends begins with the credential of its workspace, and reaches the runs of that
// workspace only; no other credential does, and none does when the workspace has ended.
func TestInsidePods(t *testing.T) {
	w := newWorld(t)
	launch := func(name string) int64 {
		return w.create(w.member, "/workspaces", `{"name":"`+name+`","project_id":`+id(w.project)+`,"request":{"gpus":0}}`)
	}
	own, other, queued := launch("own"), launch("other"), launch("queued")
	w.running(own)
	w.running(other)
	credential := func(workspace int64) string {
		row := must(w.store.Read(t.Context()).Workspace(store.AllProjects, workspace))(w)
		if row.Secret == "" || strings.Contains(workspaces.InsideToken(row), row.Secret) {
			t.Fatalf("workspace %d has the secret %q, and its credential tells it", workspace, row.Secret)
		}
		return workspaces.InsideToken(row)
	}
	inside := w.app.InsidePods()
	ask := func(credential, method, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, apiPrefix+path, strings.NewReader(body))
		r.Host = "10.0.0.1:8081"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+credential)
		rec := httptest.NewRecorder()
		inside.ServeHTTP(rec, r)
		return rec.Code, rec.Body.String()
	}
	run := w.addRun(w.project, "ann@example.org", models.RunRunning) // of no workspace
	token := credential(own)
	if status, body := ask(token, "POST", "/runs", `{"command":["true"],"request":{"gpus":0,"cpu_milli":100,"memory_mib":64}}`); status != 201 ||
		!strings.Contains(body, fmt.Sprintf(`"workspace_id":%d,`, own)) {
		t.Errorf("a run is answered %d %s", status, body)
	}
	if status, body := ask(token, "GET", "/runs/"+id(run), ""); status != 404 {
		t.Errorf("a run outside is answered %d %s", status, body)
	}
	for _, operation := range []string{"GET /users", "GET /projects", "POST /workspaces/" + id(own) + "/stop", "GET /runs/../users"} {
		method, path, _ := strings.Cut(operation, " ")
		if status, body := ask(token, method, path, ""); status != 403 && status != http.StatusTemporaryRedirect {
			t.Errorf("%s is answered %d %s", operation, status, body)
		}
	}
	_, secret, _ := strings.Cut(strings.TrimPrefix(credential(other), "weirw_"), "_")
	for name, foreign := range map[string]string{"none": "", "a member's": w.member, "of one that waits": credential(queued), "of nothing": "weirw_4711_" + secret,
		"another's": fmt.Sprintf("weirw_%d_%s", own, secret), "no secret": fmt.Sprintf("weirw_%d_", own), "no number": "weirw_x_" + secret, "too large a number": "weirw_99999999999999999999_x"} {
		if status, body := ask(foreign, "GET", "/runs", ""); status != 401 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	w.commandLine(inside, token)
	if a := w.send(token, "GET", "/runs", ""); a.status != 401 {
		t.Errorf("the portal takes the credential for a token: %d %s", a.status, a.raw)
	}
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		row, err := q.Workspace(store.AllProjects, own)
		if err != nil {
			return err
		}
		row.State = models.StateStopping
		return q.Transition(&row, models.StateRunning, models.Text{})
	})
	if status, body := ask(token, "GET", "/runs", ""); status != 401 {
		t.Errorf("after its end, a credential is answered %d %s", status, body)
	}
}

// commandLine checks that a credential gets the program that runs, once, for its kind of machine.
func (w *world) commandLine(inside http.Handler, token string) {
	w.Helper()
	path, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		w.Fatal(err)
	}
	ask := func(token, machine, tag string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(w.Context(), "GET", "/weir?machine="+machine, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("If-None-Match", tag)
		rec := httptest.NewRecorder()
		inside.ServeHTTP(rec, r)
		return rec
	}
	first := ask(token, runtime.GOARCH, "")
	if first.Code != 200 || !bytes.Equal(first.Body.Bytes(), program) {
		w.Errorf("the program is answered %d, %d bytes", first.Code, first.Body.Len())
	}
	for _, c := range []struct {
		token, machine, tag string
		status              int
		says                string
	}{
		{token, runtime.GOARCH, first.Header().Get("ETag"), 304, ""},
		{token, "pdp11", "", 409, "not for pdp11"},
		{token, "", "", 409, ""},
		{w.member, runtime.GOARCH, "", 401, ""},
	} {
		if rec := ask(c.token, c.machine, c.tag); rec.Code != c.status || !strings.Contains(rec.Body.String(), c.says) || rec.Body.Len() > 1000 {
			w.Errorf("machine %q is answered %d, %d bytes", c.machine, rec.Code, rec.Body.Len())
		}
	}
}
