package handlers

import (
	"fmt"
	"strings"
	"testing"
)

// at is the path of one request.
func (w *world) requestAt(n int64) string { return path("requests", n) }

func (w *world) state(token string, n int64) string {
	w.Helper()
	return w.get(token, w.requestAt(n)).body["state"].(string)
}

// A member asks on a page, a manager adjusts on another, and both and the API
// see the same.
func TestRequestByPageAndProgram(t *testing.T) {
	w := newWorld(t)
	w.visitor("lea@example.org", false)
	at := path("projects", w.project)
	lead := int64(w.get(w.admin, at+"/roles").body["items"].([]any)[1].(map[string]any)["id"].(float64))
	ann, lea, root := w.as("ann@example.org"), w.as("lea@example.org"), w.visitor("ada@example.org", true)
	w.member = w.token("ann@example.org") // a new password ends tokens
	w.create(w.admin, at+"/members", `{"email":"lea@example.org","role_id":`+id(lead)+`}`)

	ann.shows(ann.page(200, "GET", "/requests"), "You have not made any requests yet.", "!Pending")
	ann.shows(ann.page(200, "GET", "/requests/new"), "Higher limit", "Join a project")
	ann.shows(ann.page(200, "GET", "/requests/new?kind=limit"), "vision", "project_id="+id(w.project))
	form := fmt.Sprintf("/requests/new?kind=limit&project_id=%d", w.project)
	ann.shows(ann.page(200, "GET", form), `value="136.718 GiB"`, "Current", "Unallocated project quota", `name="limit.role_id"`)
	typed := []string{"kind", "limit", "limit.project_id", id(w.project), "limit.role_id", id(w.role), "limit.limit.gpu_cores", "120",
		"limit.limit.gpu_memory_mib", "140000 MiB", "limit.limit.cpu_milli", "4", "limit.limit.memory_mib", "16 GiB", "limit.limit.storage_mib", "100000 MiB"}
	ann.shows(ann.page(422, "POST", "/requests", typed...), `id="f-reason-error"`, `value="120"`)
	ann.shows(ann.page(422, "POST", "/requests", append(typed, "reason", "x", "limit.limit.cpu_milli", "many")...), `id="f-limit-limit-cpu_milli-error"`)
	ann.page(303, "POST", "/requests", append(typed, "reason", "two GPUs for training")...)

	inbox := w.get(w.manager, "/requests?filter=pending").body["items"].([]any)
	if len(inbox) != 1 {
		t.Fatalf("inbox: %v", inbox)
	}
	first := inbox[0].(map[string]any)
	n := int64(first["id"].(float64))
	if first["state"] != "pending" || first["may_decide"] != true || first["facts"] != nil || first["summary"] != "higher limit in vision" {
		t.Errorf("inbox: %v", first)
	}
	facts := w.get(w.manager, w.requestAt(n)).body["facts"].(map[string]any)
	if facts["remaining"].(map[string]any)["gpu_cores"] != 80.0 || facts["members"] != 1.0 || facts["capacity"].([]any)[0].(map[string]any)["capacity"] != 200.0 ||
		facts["used"].(map[string]any)["gpu_core_hours"] != 0.0 {
		t.Errorf("facts: %v", facts)
	}
	if seen := w.get(w.member, w.requestAt(n)); seen.body["facts"] != nil || seen.body["may_withdraw"] != true {
		t.Errorf("who asked sees %s", seen.raw)
	}
	lea.shows(lea.page(200, "GET", "/requests"), "Pending (1)", "Higher limit in vision", "awaiting decision", "ann@example.org", `id="nav-requests"`)
	page := lea.page(200, "GET", w.requestAt(n))
	lea.shows(page, "Unallocated quota", "two GPUs for training", `value="120"`, `name="decision" value="approve"`, "!Withdraw")
	ann.shows(ann.page(200, "GET", w.requestAt(n)), "Withdraw", "!name=\"decision\"", "!Unallocated quota")

	typed[7] = "110"
	lea.page(409, "POST", w.requestAt(n), append(typed, "decision", "approve", "version", "9")...)
	lea.page(303, "POST", w.requestAt(n), append(typed, "decision", "approve", "version", "1")...)
	got := w.get(w.member, w.requestAt(n))
	if got.body["state"] != "adjusted" || got.body["decider"] != "lea@example.org" || !strings.Contains(got.raw, `"gpu_cores":110`) {
		t.Errorf("adjusted: %s", got.raw)
	}
	ann.shows(ann.page(200, "GET", w.requestAt(n)), "adjusted", "adjusted: 110", "Decided by lea@example.org")
	root.shows(root.page(409, "POST", w.requestAt(n), append(typed, "decision", "approve")...), "lea@example.org has already approved this request")
	again := w.want(409, w.manager, "POST", w.requestAt(n)+"/decision", `{"decision":"refuse","reason":"no"}`)
	if !strings.Contains(again.raw, "lea@example.org") {
		t.Errorf("the second decider is not told who was first: %s", again.raw)
	}
	role := w.get(w.member, at+"/roles/"+id(w.role)).body["limit"].(map[string]any)
	if role["gpu_cores"] != 110.0 || role["gpu_memory_mib"] != 140000.0 {
		t.Errorf("limit: %v", role)
	}
	if told := w.get(w.member, "/notifications"); !strings.Contains(told.raw, "approved with changes: higher limit in vision") {
		t.Errorf("notifications: %s", told.raw)
	}
}

// as is a visitor with the account of somebody of the world.
func (w *world) as(email string) visitor {
	w.Helper()
	list := w.get(w.admin, "/users?q="+email).body["items"].([]any)
	user := id(int64(list[0].(map[string]any)["id"].(float64)))
	w.want(204, w.admin, "PUT", "/users/"+user+"/password", `{"password":"correct horse"}`)
	return visitor{w, w.signIn(email, "correct horse")}
}

// What is asked as it stands comes back to the same numbers, and is approved,
// not adjusted; times keep their hour.
func TestApprovedAsItStands(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	a := w.want(201, w.stranger, "POST", "/requests", `{"reason":"a team","project":{"name":"speech","quota":{"gpu_cores":7,"gpu_memory_mib":14001,"cpu_milli":1234},`+
		`"ends_at":"2100-01-01T15:30:00Z"}}`)
	n := int64(a.body["id"].(float64))
	if got, want := a.header.Get("Location"), apiPrefix+w.requestAt(n); got != want {
		t.Errorf("Location %q, want %q", got, want)
	}
	page := root.page(200, "GET", w.requestAt(n))
	root.shows(page, `name="project.ends_at.exact" value="2100-01-01T15:30:00Z"`)
	form := []string{"decision", "approve", "project.name", "speech", "project.ends_at", "2100-01-01", "project.ends_at.exact", "2100-01-01T15:30:00Z"}
	for _, field := range [][2]string{{"gpu_cores", "7"}, {"gpu_memory_mib", "13.672 GiB"}, {"cpu_milli", "1.234"}} {
		root.shows(page, `name="project.quota.`+field[0]+`"`, `value="`+field[1]+`"`)
		form = append(form, "project.quota."+field[0], field[1])
	}
	// The world's project has promised all GPU cores of the pool already.
	root.shows(root.page(200, "GET", w.requestAt(n)), "Allocate anyway", "7 more than the maximum of 200")
	root.shows(root.page(409, "POST", w.requestAt(n), form...), `id="f-confirm-error"`, `id="f-reason-error"`)
	root.page(303, "POST", w.requestAt(n), append(form, "confirm", "1", "reason", "they wait for each other")...)
	got := w.get(w.stranger, w.requestAt(n))
	if got.body["state"] != "approved" || got.body["decision_reason"] != "they wait for each other" || got.body["project"] != "speech" {
		t.Errorf("adjusted: %s", got.raw)
	}
	project := w.get(w.stranger, path("projects", int64(got.body["project_id"].(float64))))
	if project.body["ends_at"] != "2100-01-01T15:30:00Z" || project.body["quota"].(map[string]any)["gpu_memory_mib"] != 14001.0 {
		t.Errorf("project: %s", project.raw)
	}
	// So it is with the project's own form, unless the date is changed.
	at := path("projects", int64(got.body["project_id"].(float64)))
	root.shows(root.page(200, "GET", at+"/edit"), `name="ends_at" type="date"`, `name="ends_at.exact" value="2100-01-01T15:30:00Z"`)
	for _, c := range [][2]string{{"2100-01-01", "2100-01-01T15:30:00Z"}, {"2099-12-31", "2100-01-01T00:00:00Z"}} {
		root.page(303, "POST", at, "name", "speech", "ends_at", c[0], "ends_at.exact", "2100-01-01T15:30:00Z", "quota.gpu_cores", "7",
			"quota.gpu_memory_mib", "14001", "quota.cpu_milli", "1.234", "quota.memory_mib", "2293", "quota.storage_mib", "7168",
			"confirm", "1", "reason", "as it was")
		if project := w.get(w.stranger, at); project.body["ends_at"] != c[1] {
			t.Errorf("%s: %v, want %s", c[0], project.body["ends_at"], c[1])
		}
	}
	if audit := w.get(w.admin, "/audit?object=project&action=create"); !strings.Contains(audit.raw, "7 more than the maximum of 200") {
		t.Errorf("audit: %s", audit.raw)
	}
}

// Whoever is not concerned learns nothing; who asks to join, the name alone.
func TestForeignRequests(t *testing.T) {
	w := newWorld(t)
	eve, boss := w.as("eve@example.org"), w.as("boss@example.org")
	w.stranger, w.manager = w.token("eve@example.org"), w.token("boss@example.org") // new passwords end tokens
	n := int64(w.want(201, w.member, "POST", "/requests", `{"reason":"more","quota":{"project_id":`+id(w.project)+`,"quota":{"gpu_cores":300}}}`).body["id"].(float64))
	for _, p := range []string{w.requestAt(n), w.requestAt(99)} {
		eve.page(404, "GET", p)
		eve.page(404, "POST", p, "decision", "approve")
		eve.page(404, "POST", p+"/withdraw")
		w.problem(w.want(404, w.stranger, "GET", p, ""))
		w.problem(w.want(404, w.stranger, "POST", p+"/decision", `{"decision":"approve"}`))
		w.problem(w.want(404, w.stranger, "POST", p+"/withdraw", ""))
	}
	w.problem(w.want(404, w.manager, "GET", w.requestAt(n), "")) // a quota is not a manager's to decide
	w.problem(w.want(403, w.member, "POST", w.requestAt(n)+"/decision", `{"decision":"approve"}`))
	foreign := `{"reason":"more","quota":{"project_id":%d,"quota":{"gpu_cores":300}}}`
	for _, project := range []int64{w.project, 99} {
		w.problem(w.want(404, w.stranger, "POST", "/requests", fmt.Sprintf(foreign, project)))
		eve.page(404, "GET", fmt.Sprintf("/requests/new?kind=quota&project_id=%d", project))
		eve.page(404, "GET", fmt.Sprintf("/requests/new?kind=deadline&project_id=%d", project))
		eve.page(404, "GET", fmt.Sprintf("/requests/new?kind=join&project_id=%d", project))
		eve.page(404, "POST", path("projects", project, "join-requests"), "on", "1")
		w.problem(w.want(404, w.stranger, "PUT", path("projects", project, "join-requests"), `{"on":true}`))
	}
	join := []string{"kind", "join", "join.name", "vision", "reason", "hello"}
	eve.shows(eve.page(422, "POST", "/requests", join...), `id="f-join-name-error"`)
	boss.shows(boss.page(200, "GET", path("projects", w.project)), "Allow join requests")
	boss.page(303, "POST", path("projects", w.project, "join-requests"), "on", "1")
	boss.shows(boss.page(200, "GET", path("projects", w.project)), "http://example.com/requests/new?kind=join&amp;project_id="+id(w.project))
	eve.shows(eve.page(200, "GET", fmt.Sprintf("/requests/new?kind=join&project_id=%d", w.project)), "vision", "!gpu_cores")
	eve.page(303, "POST", "/requests", join...)
	mine := w.get(w.stranger, "/requests")
	n = int64(mine.body["items"].([]any)[0].(map[string]any)["id"].(float64))
	eve.shows(eve.page(200, "GET", w.requestAt(n)), "Membership in vision", `!href="/projects/`)
	boss.shows(boss.page(422, "POST", w.requestAt(n), "decision", "approve"), `id="f-join-role_id-error"`, "Exceeds the remaining quota")
	small := w.create(w.manager, path("projects", w.project, "roles"), `{"name":"guest","permission":"member","limit":`+slice+`}`)
	watcher := w.create(w.manager, path("projects", w.project, "roles"), `{"name":"watcher","permission":"viewer","limit":{}}`)
	boss.shows(boss.page(200, "GET", w.requestAt(n)), `name="join.role_id" value="`+id(watcher)+`" checked`)
	boss.page(303, "POST", w.requestAt(n), "decision", "approve", "join.role_id", id(small))
	if got := w.state(w.stranger, n); got != "approved" {
		t.Errorf("joined: %s", got)
	}
	eve.page(200, "GET", path("projects", w.project))
}

func TestWithdrawAndRefuse(t *testing.T) {
	w := newWorld(t)
	ask := `{"reason":"more","quota":{"project_id":` + id(w.project) + `,"quota":{"gpu_cores":300}}}`
	n := w.create(w.member, "/requests", ask)
	w.problem(w.want(403, w.admin, "POST", w.requestAt(n)+"/withdraw", ""))
	w.problem(w.want(412, w.member, "POST", w.requestAt(n)+"/withdraw", "", "If-Match", `"7"`))
	if a := w.want(200, w.member, "POST", w.requestAt(n)+"/withdraw", "", "If-Match", `"1"`); a.body["state"] != "withdrawn" {
		t.Errorf("withdrawn: %s", a.raw)
	}
	n = w.create(w.member, "/requests", ask)
	fields := w.problem(w.want(422, w.admin, "POST", w.requestAt(n)+"/decision", `{"decision":"refuse"}`))
	if fields["reason"] == "" {
		t.Errorf("refused without a reason: %v", fields)
	}
	w.problem(w.want(412, w.admin, "POST", w.requestAt(n)+"/decision", `{"decision":"approve"}`, "If-Match", `"7"`))
	if a := w.want(200, w.admin, "POST", w.requestAt(n)+"/decision", `{"decision":"refuse","reason":"no machines"}`); a.body["state"] != "refused" {
		t.Errorf("refused: %s", a.raw)
	}
	if list := w.get(w.admin, "/requests?filter=decided").body["items"].([]any); len(list) != 2 {
		t.Errorf("settled: %v", list)
	}
	if list := w.get(w.member, "/requests?limit=1"); list.body["next_cursor"] == nil {
		t.Errorf("mine: %s", list.raw)
	}
	fields = w.problem(w.want(422, w.member, "POST", "/requests", `{"reason":"x","quota":{"project_id":1,"quota":{"gpu_cores":1}}}`))
	if fields["quota.quota.gpu_cores"] == "" {
		t.Errorf("no more asked: %v", fields)
	}
}

func TestPromisesPage(t *testing.T) {
	w := newWorld(t)
	root, bob := w.visitor("ada@example.org", true), w.visitor("bob@example.org", false)
	bob.page(403, "GET", "/capacity")
	bob.page(403, "POST", "/capacity", "ratio.gpu_cores", "1")
	w.problem(w.want(403, w.manager, "GET", "/capacity", ""))
	root.shows(root.page(200, "GET", "/capacity"), "vision", "unknown", `name="ratio.gpu_cores"`, `value="100"`, "!Allocated quotas exceed the capacity")
	form := []string{"ratio.gpu_cores", "150", "ratio.gpu_memory_mib", "150", "ratio.cpu_milli", "200", "ratio.memory_mib", "100", "ratio.storage_mib", "0", "stated.cpu_milli", "4"}
	root.shows(root.page(422, "POST", "/capacity", form...), `id="f-ratio-storage_mib-error"`, `value="150"`)
	form[9] = "100"
	root.page(303, "POST", "/capacity", form...)
	root.page(409, "POST", "/capacity", append(form, "version", "1")...)
	root.shows(root.page(200, "GET", "/capacity"), "Allocated quotas exceed the capacity", "CPU: 12 above capacity", "100%")
	got := w.get(w.admin, "/capacity")
	cpu := got.body["resources"].([]any)[2].(map[string]any)
	if cpu["allocatable"] != 8000.0 || cpu["above_allocatable"] != 8000.0 || cpu["above_capacity"] != 12000.0 || got.body["projects"].([]any)[0].(map[string]any)["name"] != "vision" {
		t.Errorf("capacity: %s", got.raw)
	}
	w.want(200, w.admin, "PUT", "/capacity", `{"ratio":{"gpu_cores":100,"gpu_memory_mib":100,"cpu_milli":100,"memory_mib":100,"storage_mib":100}}`, "If-Match", got.header.Get("ETag"))
	w.problem(w.want(412, w.admin, "PUT", "/capacity", `{"ratio":{"gpu_cores":100,"gpu_memory_mib":100,"cpu_milli":100,"memory_mib":100,"storage_mib":100}}`, "If-Match", got.header.Get("ETag")))
}
