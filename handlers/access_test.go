package handlers

import (
	"fmt"
	"testing"
)

// staff are a manager and a viewer of the world's project at browsers.
func (w *world) staff() (manager, viewer visitor) {
	at := "/projects/" + id(w.project)
	manager, viewer = w.visitor("mia@example.org", false), w.visitor("vic@example.org", false)
	boss := w.create(w.admin, at+"/roles", `{"name":"deputy","permission":"manager","limit":`+slice+`}`)
	guest := w.create(w.admin, at+"/roles", `{"name":"guest","permission":"viewer","limit":{}}`)
	w.create(w.admin, at+"/members", `{"email":"mia@example.org","role_id":`+id(boss)+`}`)
	w.create(w.admin, at+"/members", `{"email":"vic@example.org","role_id":`+id(guest)+`}`)
	return manager, viewer
}

// The page and the API give one answer, in words and in fields.
func TestAskingWhatSomebodyMayDo(t *testing.T) {
	w := newWorld(t)
	manager, viewer := w.staff()
	at := "/access?email=vic@example.org&project_id=" + id(w.project)
	page := manager.page(200, "GET", at+"&right=workspace:launch")
	manager.shows(page, "Not allowed: vic@example.org does not have permission workspace:launch in vision.", "Has the role guest in the project", "Missing permission: workspace:launch", "engineer, lead, deputy",
		`value="vic@example.org"`, `value="vision"`)
	token := w.token("mia@example.org")
	got := w.get(token, at+"&object=workspace&act=launch").body
	if got["allowed"] != false || got["missing"] != "workspace:launch" || len(got["roles"].([]any)) != 3 || len(got["steps"].([]any)) != 6 {
		t.Errorf("%v", got)
	}
	yes := w.get(token, at+"&object=workspace&act=read").body
	if yes["allowed"] != true || fmt.Sprint(yes["rule"].([]any)[1:]) != fmt.Sprint("[", w.project, " workspace read]") {
		t.Errorf("%v", yes)
	}
	manager.shows(manager.page(200, "GET", "/access"), "mia@example.org", "!Not allowed:", "!Allowed:")
	manager.shows(manager.page(422, "GET", at+"&right=role:own"), "must be one of")
	if a := w.want(422, w.admin, "GET", "/access?object=role&act=own", ""); w.problem(a)["query.right"] == "" && w.problem(a)["right"] == "" {
		t.Errorf("%s", a.raw)
	}
	viewer.page(404, "GET", "/access?email=mia@example.org&project_id="+id(w.project)+"&right=role:write")
	viewer.page(404, "GET", "/access?email=nobody@example.org&right=pool:read")
	viewer.shows(viewer.page(200, "GET", "/access?right=pool:read"), "Allowed: vic@example.org has permission pool:read in the platform.")
}

// The forms of roles offer what the reader can grant, and close the rest with
// the reason.
func TestCustomRolesByForm(t *testing.T) {
	w := newWorld(t)
	manager, viewer := w.staff()
	at := "/projects/" + id(w.project)
	page := manager.page(200, "GET", at+"/roles/new")
	manager.shows(page, `value="viewer" checked`, `value="custom"`, `value="member:write"`, "You do not have this permission, so you cannot grant it.", "Includes permissions that you do not have: project:describe")
	manager.page(303, "POST", at+"/roles", "name", "steward", "permission", "custom", "permissions", "member:write")
	var role map[string]any
	for _, r := range w.get(w.admin, at+"/roles").body["items"].([]any) {
		if r.(map[string]any)["name"] == "steward" {
			role = r.(map[string]any)
		}
	}
	if role["permission"] != "custom" || fmt.Sprint(role["permissions"]) != "[member:write project:read]" {
		t.Errorf("%v", role)
	}
	manager.shows(manager.page(200, "GET", at), "custom: member:write, project:read")
	manager.shows(manager.page(422, "POST", at+"/roles", "name", "none", "permission", "custom"), "at least one permission")
	manager.shows(manager.page(403, "POST", at+"/roles", "name", "chief", "permission", "owner"), "The role chief has permissions that you do not have: project:describe")
	if got := w.want(403, w.token("mia@example.org"), "POST", at+"/roles", `{"name":"chief","permission":"owner","limit":{}}`); w.problem(got)["permission"] == "" {
		t.Errorf("%s", got.raw)
	}
	w.want(422, w.manager, "POST", at+"/roles", `{"name":"x","permission":"member","permissions":["audit:read"],"limit":{}}`)
	w.want(422, w.manager, "POST", at+"/roles", `{"name":"x","permission":"custom","permissions":["root"],"limit":{}}`)
	viewer.shows(viewer.page(200, "GET", at), "!/roles/new", "!Launch workspace", "!/members/new")
	viewer.page(200, "GET", "/")
}

// An auditor is shown everything and offered nothing to change.
func TestAuditorsAtTheirBrowser(t *testing.T) {
	w := newWorld(t)
	audrey, boss := w.visitor("audrey@example.org", false), w.visitor("rita@example.org", true)
	user := id(int64(w.get(w.admin, "/users?q=audrey").body["items"].([]any)[0].(map[string]any)["id"].(float64)))
	boss.page(303, "POST", "/people/"+user, "name", "Audrey", "auditor", "1")
	if got := w.get(w.admin, "/users/"+user).body; got["auditor"] != true {
		t.Errorf("%v", got)
	}
	for _, path := range []string{"/", "/projects", "/projects/" + id(w.project), "/people", "/people/" + user, "/pool", "/pool/planning", "/capacity",
		"/webhooks", "/departments", "/environments", "/workspaces", "/access?email=ann@example.org&project_id=" + id(w.project) + "&right=role:write"} {
		page := audrey.page(200, "GET", path)
		audrey.shows(page, "!/new\"", "!/edit\"", "!Create password link")
	}
	audrey.page(403, "POST", "/people/"+user, "name", "Audrey", "admin", "1")
	w.want(403, w.token("audrey@example.org"), "PUT", "/users/"+user, `{"name":"A","admin":true,"disabled":false}`)
}
