package handlers

import (
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// addDeployment puts a deployment of a member into the tables.
func (w *world) addDeployment(project int64, email string, task models.ModelTask) int64 {
	w.Helper()
	var d models.Deployment
	storetest.InTx(w, w.store, func(q *store.Queries) error {
		user, err := q.UserByEmail(email)
		if err != nil {
			return err
		}
		m, err := q.Membership(project, user.ID)
		if err != nil {
			return err
		}
		d = models.Deployment{ProjectID: project, MemberID: m.ID, UserID: user.ID, EnvironmentID: w.environment, Name: "tiny", UpdateStrategy: models.UpdateRolling,
			Path: "/notebook/1/project_model/tiny", ServiceType: "text-generation", Task: task, Batch: 1, Context: 8, Hidden: 2, Vocabulary: 256, TextPrompts: true,
			Plan:   models.ModelPlan{Parts: []models.ModelPart{{First: "input", Last: "model.layers.0"}, {First: "model.layers.1", Last: "output"}}},
			Secret: "00ff", State: models.DeploymentServing, Demand: models.Demand{CPUMilli: 10, MemoryMiB: 64}, Target: []models.Parameter{},
			Version: 1, RequestedAt: q.Now()}
		return q.CreateDeployment(&d, 2, models.Say("Requested: %s.", models.Say("test")))
	})
	return d.ID
}

// A deployment is shown with its parts, never with its key, and its requests are checked.
func TestDeployments(t *testing.T) {
	w := newWorld(t)
	at := "/deployments/" + id(w.addDeployment(w.project, "ann@example.org", models.TaskTextGeneration))
	own := w.get(w.member, at)
	hasTexts(t, own.raw, `"first":"input"`, `"state":"waiting"`, `"message":"Requested: test."`)
	if strings.Contains(own.raw, "00ff") {
		t.Error("the key is shown")
	}
	hasTexts(t, w.page(w.member, at), "Virtual GPU", "model.layers.1", "/stop")
	hasTexts(t, w.page(w.member, "/deployments"), "tiny", "0 of 2 loaded")
	hasTexts(t, w.get(w.member, at+"/v1/models").raw, `"id":"tiny"`)
	w.problem(w.want(409, w.member, "GET", at+"/v2/models/tiny", ""))
	w.problem(w.want(409, w.member, "POST", at+"/v2/models/tiny/infer", inferBody))
	for body, field := range map[string]string{`{"prompt":7}`: "prompt", `{"prompt":[256]}`: "prompt", `{"prompt":""}`: "prompt",
		`{"prompt":"a","max_tokens":8}`: "max_tokens", `{"prompt":"a","max_tokens":1.5}`: "max_tokens", `{"prompt":"a","temperature":3}`: "temperature",
		`{"prompt":"a","top_p":1.01}`: "top_p", `{"prompt":"a","top_p":1e400}`: "top_p", `{"prompt":"a","seed":1e30}`: "seed"} {
		if a := w.send(w.member, "POST", at+"/v1/completions", body); a.status != 422 {
			t.Errorf("%s: %d, %s", field, a.status, a.raw)
		} else {
			hasTexts(t, a.raw, field)
		}
	}
	for _, body := range []string{`{"prompt":"a","max_tokens":2.0,"temperature":0.7,"top_p":9e-1}`, `{"prompt":[9.7e1],"max_tokens":2,"temperature":1.0}`} {
		if a := w.send(w.member, "POST", at+"/v1/completions", body); a.status != 503 {
			t.Errorf("%s: %d, %s, not that the first part is not loaded", body, a.status, a.raw)
		}
	}
	if a := w.send(w.member, "POST", at+"/stop", ""); a.status != 202 || a.body["state"] != "stopping" {
		t.Errorf("%d, %s", a.status, a.raw)
	}
	if a := w.send(w.member, "POST", "/deployments", `{"project_id":`+id(w.project)+`,"path":"/notebook/1/project_model/nowhere"}`); a.status != 422 ||
		!strings.Contains(a.raw, `"field":"path"`) {
		t.Errorf("a path without anything: %d %s", a.status, a.raw)
	}
	if a := w.send(w.member, "POST", "/deployments", `{"project_id":`+id(w.project)+`,"path":"/notebook/1/project_model","reservation_id":4711}`); a.status != 422 ||
		!strings.Contains(a.raw, `"field":"reservation_id"`) {
		t.Errorf("a reservation that does not exist: %d %s", a.status, a.raw)
	}
	if a := w.send(w.member, "POST", "/deployments", `{"project_id":`+id(w.project)+`,"path":"/notebook/1/project_model"}`); a.status != 409 {
		t.Errorf("%d, %s", a.status, a.raw)
	}
}
