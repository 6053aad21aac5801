package handlers

import (
	"strings"
	"testing"
)

func TestDepartments(t *testing.T) {
	w := newWorld(t)
	root, bob := w.visitor("ada@example.org", true), w.visitor("bob@example.org", false)
	root.shows(root.page(200, "GET", "/departments"), "No departments yet.", `href="/departments/new"`)
	root.shows(root.page(422, "POST", "/departments", "name", ""), `id="f-name-error"`)
	root.page(303, "POST", "/departments", "name", "Vision")
	root.shows(root.page(409, "POST", "/departments", "name", "Vision"), `id="f-name-error"`, `value="Vision"`)
	speech := w.create(w.admin, "/departments", `{"name":"Speech"}`)
	w.problem(w.want(409, w.admin, "POST", "/departments", `{"name":"Speech"}`))
	for _, p := range []string{"/departments", "/departments/new", "/departments/1", "/departments/1/delete"} {
		bob.page(403, "GET", p)
	}
	for _, p := range []string{"/departments", "/departments/1", "/departments/1/delete"} {
		bob.page(403, "POST", p, "name", "x")
	}
	w.problem(w.want(403, w.member, "GET", "/departments", ""))
	w.problem(w.want(403, w.manager, "POST", "/departments", `{"name":"x"}`))
	w.problem(w.want(403, w.manager, "PUT", "/departments/1", `{"name":"x"}`))
	w.problem(w.want(403, w.manager, "DELETE", "/departments/1", ""))
	root.page(404, "GET", "/departments/99")
	w.problem(w.want(404, w.admin, "GET", "/departments/99", ""))

	// A person gets one by the form and by the API.
	ann := w.get(w.admin, "/users?q=ann@").body["items"].([]any)[0].(map[string]any)
	at := path("people", int64(ann["id"].(float64)))
	root.shows(root.page(200, "GET", at), "Vision", "Speech", `name="department_id"`)
	root.page(303, "POST", at, "name", "Ann", "department_id", "1")
	root.shows(root.page(422, "POST", at, "name", "Ann", "department_id", "99"), `id="f-department_id-error"`)
	user := w.get(w.admin, "/users/"+strings.TrimPrefix(at, "/people/"))
	if user.body["department"] != "Vision" || user.body["department_id"] != 1.0 || w.get(w.member, "/me").body["department"] != "Vision" {
		t.Errorf("person: %s", user.raw)
	}
	root.shows(root.page(200, "GET", "/people?q=ann@"), "Vision")
	root.shows(root.page(200, "GET", path("projects", w.project)), "Vision", "Department", "Joined")
	if member := w.get(w.admin, path("projects", w.project, "members", w.place)); member.body["department"] != "Vision" || member.body["joined_at"] == nil {
		t.Errorf("member: %s", member.raw)
	}
	w.problem(w.want(422, w.admin, "PUT", "/users/"+strings.TrimPrefix(at, "/people/"), `{"name":"Ann","admin":false,"disabled":false,"department_id":99}`))

	list := w.get(w.admin, "/departments?limit=1")
	first := list.body["items"].([]any)[0].(map[string]any)
	if first["people"] != 1.0 || first["projects"] != 1.0 || list.body["next_cursor"] == nil {
		t.Errorf("departments: %s", list.raw)
	}
	for _, at := range []string{"/departments/1", "/departments/1/delete"} {
		root.shows(root.page(200, "GET", at), "1 person is in the department Vision", `!class="btn danger"`)
	}
	root.shows(root.page(409, "POST", "/departments/1/delete", "version", "1"), "1 person is in the department Vision")
	w.problem(w.want(409, w.admin, "DELETE", "/departments/1", ""))
	etag := w.get(w.admin, path("departments", speech)).header.Get("ETag")
	w.want(200, w.admin, "PUT", path("departments", speech), `{"name":"Language"}`, "If-Match", etag)
	w.problem(w.want(412, w.admin, "PUT", path("departments", speech), `{"name":"Words"}`, "If-Match", etag))
	root.page(409, "POST", path("departments", speech), "name", "Words", "version", "1")
	root.page(303, "POST", path("departments", speech), "name", "Words", "version", "2")
	w.problem(w.want(412, w.admin, "DELETE", path("departments", speech), "", "If-Match", etag))
	root.shows(root.page(200, "GET", path("departments", speech)+"/delete"), `class="btn danger"`)
	w.want(204, w.admin, "DELETE", path("departments", speech), "")
	root.shows(root.page(200, "GET", "/departments"), "Vision", "!>Words<")
}

// Instead of a button that must fail, a page says why the thing cannot be deleted.
func TestBlockedDeletion(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	ws := w.get(w.member, path("workspaces", w.create(w.member, "/workspaces", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`)))
	role := path("projects", w.project, "roles", w.role)
	for page, why := range map[string]string{
		role + "/edit":             "1 member has this role.",
		role + "/delete":           "1 member has this role.",
		"/pool/providers/1/remove": "is the machine that the portal runs on and cannot be removed.",
		path("environments", int64(ws.body["environment_id"].(float64)), "delete"): "This environment has been used by workspaces or runs and cannot be deleted.",
	} {
		root.shows(root.page(200, "GET", page), why, `!class="btn danger" data-dialog`, `!class="btn danger" type="submit">Delete`)
	}
}
