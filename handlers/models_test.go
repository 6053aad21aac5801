package handlers

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// A launch for a model tells by REST and on the page what the model needs, and why no
// environment satisfies it.
func TestModelsByREST(t *testing.T) {
	w := newWorld(t)
	w.want(201, w.member, "POST", "/projects/"+id(w.project)+"/files/directories", `{"path":"`+w.modelPath("/llama")+`"}`)
	at := w.filesOf("/environment", "/llama")
	w.want(200, w.member, "PUT", at, `{"environment":"cobol","minimum":{"gpus":1}}`)
	w.want(422, w.member, "PUT", at, `{"minimum":{"gpus":-1}}`)
	if a := w.get(w.member, at); a.body["environment"] != "cobol" || a.body["path"] != w.modelPath("/llama") || fmt.Sprint(a.body["minimum"]) != "map[gpus:1]" {
		t.Errorf("%s", a.raw)
	}
	launch := `{"project_id":` + id(w.project) + `,"model_path":"` + w.modelPath("/llama") + `"}`
	const reason = "needs the environment cobol, which is not in the catalog"
	a := w.want(200, w.member, "POST", "/launch/preview", launch)
	if !strings.Contains(a.raw, reason) || a.body["model"].(map[string]any)["environment"] != "cobol" {
		t.Errorf("%s", a.raw)
	}
	if a := w.want(422, w.member, "POST", "/workspaces", launch); w.problem(a)["model_path"] != reason {
		t.Errorf("%s", a.raw)
	}
	ann := w.as("ann@example.org")
	query := "/launch?project_id=" + id(w.project) + "&model_path=" + url.QueryEscape(w.modelPath("/llama"))
	ann.shows(ann.page(200, "GET", query), "For the model "+w.modelPath("/llama"), reason, `name="model_path"`)
	w.want(404, w.admin, "GET", at, "")
}

// The page of a model tells and sets what it needs, and leads to its launch.
func TestModelsByPage(t *testing.T) {
	w := newWorld(t)
	w.want(201, w.member, "POST", "/projects/"+id(w.project)+"/files/directories", `{"path":"`+w.modelPath("/llama")+`"}`)
	at := w.filesOf("/environment", "/llama")
	w.want(200, w.member, "PUT", at, `{"minimum":{"gpus":2}}`)
	entry := w.filesPage("/entry", "/llama")
	hasTexts(t, w.page(w.member, entry), "At least 2 × 1 GPU cores<", "Launch with this model", "/launch?project_id="+id(w.project)+"&amp;model_path="+w.modelPath("/llama"))
	save := w.filesPage("/environment", "/llama")
	hasTexts(t, w.redirected(w.member, save, url.Values{"model_environment": {"cobol"}, "version_constraints": {"python>=3.11"}}), `value="cobol"`, `value="python&gt;=3.11"`)
	if a := w.get(w.member, at); a.body["environment"] != "cobol" || fmt.Sprint(a.body["minimum"]) != "map[gpus:2]" {
		t.Errorf("%s", a.raw)
	}
	hasTexts(t, w.form(w.member, save, url.Values{"model_environment": {strings.Repeat("x", 101)}}).raw, "at most 100")
	w.want(200, w.member, "PUT", w.filesOf("/content", "/llama/weir.yaml"), "minimum: yes")
	page := w.page(w.member, entry)
	if hasTexts(t, page, "The file weir.yaml is not valid"); strings.Contains(page, "Launch with this model") {
		t.Error("it can be launched")
	}
	w.redirected(w.member, save, url.Values{"model_environment": {"Python"}})
	if a := w.get(w.member, at); a.body["environment"] != "Python" {
		t.Errorf("%s", a.raw)
	}
}

func TestCuratorsByREST(t *testing.T) {
	w := newWorld(t)
	w.want(403, w.manager, "POST", "/curators", `{"directory":"/public_model","project_name":"vision"}`)
	public := "/projects/" + id(w.project) + "/files/content?path=/public_model/a"
	w.want(403, w.member, "PUT", public, "x")
	made := w.want(201, w.admin, "POST", "/curators", `{"directory":"/public_model","project_name":"vision"}`)
	w.want(200, w.member, "PUT", public, "x")
	if a := w.get(w.admin, "/curators"); len(a.body["items"].([]any)) != 1 {
		t.Errorf("%s", a.raw)
	}
	w.want(204, w.admin, "DELETE", "/curators/"+fmt.Sprint(made.body["id"]), "")
	w.want(403, w.member, "PUT", public, "y")
}

func TestCuratorsByPage(t *testing.T) {
	w := newWorld(t)
	public := "/projects/" + id(w.project) + "/files/content?path=/public_model/a"
	root, boss := w.visitor("ada@example.org", true), w.as("boss@example.org")
	boss.page(403, "GET", "/curators")
	root.shows(root.page(200, "GET", "/curators"), "No curators yet", "Add curator", ">/public_dataset</option>")
	for problem, values := range map[string]url.Values{
		"must be set, or else the name of a project": {"directory": {"/public_model"}},
		"is not the name of a project":               {"directory": {"/public_model"}, "project_name": {"Vision"}},
		"no account has this email address":          {"directory": {"/public_model"}, "email": {"nobody@example.org"}},
		"must be one of /public_":                    {"directory": {"/notebook"}, "email": {"ann@example.org"}},
	} {
		hasTexts(t, w.form(w.admin, "/curators", values).raw, problem, `<a href="#f-`)
	}
	hasTexts(t, w.redirected(w.admin, "/curators", url.Values{"directory": {"/public_model"}, "email": {"Ann@example.org"}}), ">ann@example.org<", "Remove")
	w.want(200, w.member, "PUT", public, "x")
	list := w.get(w.admin, "/curators").body["items"].([]any)
	at := "/curators/" + fmt.Sprint(list[0].(map[string]any)["id"]) + "/delete"
	hasTexts(t, w.page(w.admin, at), "Files stay.", "Remove curator")
	hasTexts(t, w.redirected(w.admin, at, nil), "No curators yet")
	w.want(403, w.member, "PUT", public, "y")
}
