package handlers

import (
	"strings"
	"testing"
)

// The form is shown with the pool, and what it creates can be used at once.
func TestStartPages(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	at := "/projects/start"
	root.shows(root.page(200, "GET", at), `name="members"`, `name="quota.gpu_cores"`, "Limit per member", "server setting for each GPU", "!Select a role", `!role="alert"`)
	root.shows(root.page(200, "POST", at, "preview", "1", "name", "", "members", "2", "quota.gpu_cores", "100"), ">50<", `!role="alert"`)
	root.shows(root.page(200, "POST", at, "preview", "1", "members", "many"), "would be refused", "must be a whole number")
	for _, wrong := range [][2]string{{"members", "0"}, {"members", "-1"}, {"members", "10000"}, {"members", "four"}, {"quota.gpu_cores", "-1"}, {"quota.gpu_cores", "unlimited"},
		{"quota.gpu_cores", "99999999999999999999"}, {"name", ""}} {
		form := map[string]string{"name": "speech", "members": "2", "quota.gpu_cores": "100"}
		form[wrong[0]] = wrong[1]
		root.shows(root.page(422, "POST", at, "name", form["name"], "members", form["members"], "quota.gpu_cores", form["quota.gpu_cores"]),
			`id="f-`+strings.ReplaceAll(wrong[0], ".", "-")+`-error"`)
	}
	form := []string{"name", "speech", "members", "2", "quota.gpu_cores", "100"}
	root.shows(root.page(200, "POST", at, append(form, "preview", "1")...), "needs confirmation", "300 would be allocated, 100 more than the maximum of 200")
	root.shows(root.page(409, "POST", at, form...), `id="f-confirm-error"`, `id="f-reason-error"`, "100 more than the maximum of 200", `class="flash warn beyond needed"`)
	form = append(form, "confirm", "1", "reason", "a machine is ordered")
	root.page(303, "POST", at, form...)
	root.shows(root.page(409, "POST", at, form...), `id="f-name-error"`) // sent twice
	projects := w.get(w.admin, "/projects?q=speech").body["items"].([]any)
	if len(projects) != 1 {
		t.Fatalf("%d projects", len(projects))
	}
	id := id(int64(projects[0].(map[string]any)["id"].(float64)))
	root.shows(root.page(200, "GET", "/launch?project_id="+id), "role owner", `!role="alert"`)
}

// The links of those invited are shown once, and a refused address is named.
func TestStartPageInvites(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	form := func(emails string) []string {
		return []string{"name", "speech", "members", "4", "quota.gpu_cores", "100", "emails", emails, "confirm", "1", "reason", "a test"}
	}
	root.shows(root.page(422, "POST", "/projects/start", form("zoe@example.org, nobody")...), `id="f-emails-error"`, "nobody: must be an email address")
	root.shows(root.page(422, "POST", "/projects/start", form("a@example.org b@example.org c@example.org d@example.org")...), "must be at least 5")
	root.shows(root.page(201, "POST", "/projects/start", form("zoe@example.org\nyan@example.org")...), "zoe@example.org", "/invitation?token=", `href="/launch?project_id=`)
	got := w.want(201, w.admin, "POST", "/projects/start", `{"name":"vision 2","emails":["zoe@example.org"]}`)
	list := got.body["invitations"].([]any)
	if len(list) != 1 || !strings.Contains(list[0].(map[string]any)["url"].(string), "/invitation?token=") {
		t.Errorf("invitations: %s", got.raw)
	}
}

// By program a project is started like on the page, an absent amount is filled in, and
// unlimited is a value.
func TestStartByProgram(t *testing.T) {
	w := newWorld(t)
	before := w.want(200, w.admin, "POST", "/projects/start/preview", `{"name":"","quota":{"gpu_cores":100}}`)
	if !strings.Contains(before.raw, `{"resource":"cpu_milli","amount":8000,"source":"settings"}`) || before.body["members"] != 4.0 {
		t.Errorf("preview: %s", before.raw)
	}
	got := w.want(201, w.admin, "POST", "/projects/start", `{"name":"speech","quota":{"gpu_cores":100,"cpu_milli":"unlimited"}`+beyond+`}`)
	project, owner := got.body["project"].(map[string]any), got.body["owner"].(map[string]any)
	if q := project["quota"].(map[string]any); q["cpu_milli"] != "unlimited" || q["memory_mib"] != 32768.0 {
		t.Errorf("quota %v", q)
	}
	if project["remaining"].(map[string]any)["cpu_milli"] != "unlimited" || owner["limit"].(map[string]any)["gpu_cores"] != 25.0 {
		t.Errorf("created: %s", got.raw)
	}
	for _, wrong := range []string{`{"members":2}`, `{"name":"x","members":-1}`, `{"name":"x","members":10000}`, `{"name":"x","members":"four"}`,
		`{"name":"x","quota":{"gpu_cores":"unlimited"}}`, `{"name":"x","quota":{"cpu_milli":"none"}}`, `{"name":"x","quota":{"cpu_milli":2000000000000}}`,
		`{"name":"x","quota":{"gpu_cores":99999999999999999999}}`, `{"name":"x","role":"owner"}`} {
		w.problem(w.want(422, w.admin, "POST", "/projects/start", wrong))
	}
	w.problem(w.want(409, w.admin, "POST", "/projects/start", `{"name":"speech"}`))
}

// A launch page opens with no error that nobody caused: a limit of 0 is named as that,
// with who can change it, and what is entered wrongly is an error.
func TestLaunchWithoutALimit(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	role := path("projects", w.project, "roles", w.role)
	root.page(303, "POST", role, "name", "engineer", "permission", "member", "limit.gpu_cores", "50", "limit.cpu_milli", "0", "limit.memory_mib", "0", "version", "1")
	ann := visitor{w, w.signInAs("ann@example.org")}
	launch := "/launch?project_id=" + id(w.project)
	says := "The limit of the role engineer is 0 for: CPU, Memory."
	ann.shows(ann.page(200, "GET", launch), says, "managers can change the limit", "Cannot launch this workspace", `!role="alert"`, `!class="error"`)
	ann.shows(ann.page(200, "GET", launch+"&cpu_milli=1"), says, `!role="alert"`)
	refused := w.want(409, w.member, "POST", "/workspaces", `{"project_id":`+id(w.project)+`}`)
	if refused.body["kind"] != "no_capacity" || !strings.Contains(refused.raw, says) || refused.body["errors"] != nil {
		t.Errorf("refused: %s", refused.raw)
	}
	root.page(303, "POST", role, "name", "engineer", "permission", "member", "limit.gpu_cores", "50", "version", "2")
	ann.shows(ann.page(200, "GET", launch), "Starts immediately", `!role="alert"`)
	ann.shows(ann.page(200, "GET", launch+"&cpu_milli=99"), `role="alert"`, `id="f-cpu_milli-error"`)
}
