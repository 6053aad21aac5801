package handlers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/pool/projects"
	"weir/pool/requests"
)

// lookAtEnds gives the notices of ends that are due.
func (w *world) lookAtEnds() {
	w.Helper()
	p := requests.NewPeriods(w.store)
	if _, err := p.Round(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// stopClock lets time pass only when the test says so, from a whole second on.
func (w *world) stopClock() (pass func(time.Duration)) {
	now := w.store.Now().Truncate(time.Second).Add(time.Second)
	w.store.Clock = func() time.Time { return now }
	return func(d time.Duration) { now = now.Add(d) }
}

// endIn moves the end of the project, or of ann's membership, so far from
// now.
func (w *world) endIn(d time.Duration) time.Time {
	w.Helper()
	end := w.store.Now().Add(d)
	at := path("projects", w.project)
	w.want(200, w.admin, "PUT", at, `{"name":"vision","quota":`+plenty+`,"ends_at":"`+end.Format(time.RFC3339)+`"}`, "If-Match", "*")
	return end
}

func (w *world) untilIn(d time.Duration) time.Time {
	w.Helper()
	until := w.store.Now().Add(d)
	w.want(200, w.admin, "PUT", path("projects", w.project, "members", w.place), fmt.Sprintf(`{"role_id":%d,"until":"%s"}`, w.role, until.Format(time.RFC3339)), "If-Match", "*")
	return until
}

// newest is the newest notice of somebody.
func (w *world) newest(token string) map[string]any {
	w.Helper()
	items := w.get(token, "/notifications").body["items"].([]any)
	if len(items) == 0 {
		return map[string]any{}
	}
	return items[0].(map[string]any)
}

// An end that is near stands on the pages it concerns, and one click, or one
// call, asks for a later one.
func TestOneClickRequest(t *testing.T) {
	w := newWorldWith(t, func(c *Config) { c.SessionLifetime = 100 * time.Hour })
	pass := w.stopClock()
	ann := w.as("ann@example.org")
	boss, root := w.as("boss@example.org"), w.visitor("ada@example.org", true)
	w.member, w.manager = w.token("ann@example.org"), w.token("boss@example.org")
	for _, page := range []string{"/", path("projects", w.project)} {
		ann.shows(ann.page(200, "GET", page), "!vision ends", "!Request 30 more days")
	}
	end := w.endIn(6*24*time.Hour + time.Hour)
	w.untilIn(20 * time.Hour)
	w.lookAtEnds()
	ann.shows(ann.page(200, "GET", "/"), "Project vision ends <time", ">in 6 days</time> (2", "Your membership in vision ends <time", ">in 20\u00a0h</time> (2", "Request 30 more days")
	boss.shows(boss.page(200, "GET", path("projects", w.project)), "Project vision ends <time", ">in 6 days<", "Request 30 more days", "!Your membership")
	root.shows(root.page(200, "GET", path("projects", w.project)), "Set a later end date", path("projects", w.project, "edit"), "!Request 30 more days")

	notification := w.newest(w.manager) // of ann's deadline, which the boss sets
	if notification["kind"] != "deadline.members" || notification["request"] != nil || notification["path"] != path("projects", w.project, "members", w.place, "edit") {
		t.Errorf("%v", notification)
	}
	notification = w.newest(w.member)
	if notification["kind"] != "deadline.ending" || notification["request"] == nil {
		t.Fatalf("%v", notification)
	}
	body, err := json.Marshal(notification["request"])
	if err != nil {
		t.Fatal(err)
	}
	n := w.create(w.member, "/requests", string(body))
	w.want(409, w.member, "POST", "/requests", string(body))
	if notification = w.newest(w.member); notification["request"] != nil || notification["requested"] != true || notification["pending_request"] != float64(n) {
		t.Errorf("asked: %v", notification)
	}
	ann.shows(ann.page(200, "GET", "/notifications"), "You have requested an extension", path("requests", n), "!Request 30 more days")

	later := end.Add(30 * 24 * time.Hour).Format(time.RFC3339)
	page := boss.page(200, "GET", "/notifications")
	boss.shows(page, "Request 30 more days", `name="period.ends_at" value="`+later+`"`, `name="kind" value="period"`)
	form := []string{"kind", "period", "period.project_id", id(w.project), "period.ends_at", later, "reason", "The work goes on."}
	boss.page(303, "POST", "/requests", form...)
	boss.shows(boss.page(409, "POST", "/requests", form...), "You already have a pending request for this", `value="`+later[:10]+`"`)
	boss.shows(boss.page(200, "GET", "/"), "You have requested an extension", "!Request 30 more days")
	ann.shows(ann.page(200, "GET", "/"), "Someone else has requested an extension")
	asked := w.get(w.manager, "/requests").body["items"].([]any)[0].(map[string]any)
	if got := asked["requested"].(map[string]any)["period"].(map[string]any)["ends_at"]; got != later {
		t.Errorf("asked for %v, want %s", got, later)
	}
	w.want(200, w.admin, "POST", path("requests", int64(asked["id"].(float64)), "decision"), `{"decision":"approve","confirm":true,"reason":"so be it"}`, "If-Match", "*")
	boss.shows(boss.page(200, "GET", "/notifications"), "!Request 30 more days", "approved")

	pass(25 * time.Hour) // ann is out; the notice still lets her ask
	w.lookAtEnds()
	if notification = w.newest(w.member); notification["kind"] != "deadline.ended" || notification["requested"] != true {
		t.Errorf("ended: %v", notification)
	}
	ann.page(404, "GET", path("projects", w.project))
	ann.shows(ann.page(200, "GET", notification["path"].(string)), "vision", "Current end")
}

// People read and type the last day with access; programs the time from which on
// there is none.
func TestEndDateIsTheLastDay(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	member := path("projects", w.project, "members", w.place)
	root.page(303, "POST", member, "role_id", id(w.role), "until", "2100-01-31", "version", "1")
	if got := w.get(w.admin, member).body["until"]; got != "2100-02-01T00:00:00Z" {
		t.Errorf("the API says %v", got)
	}
	root.shows(root.page(200, "GET", member+"/edit"), `name="until"`, `value="2100-01-31"`, "!2100-02-01")
	root.shows(root.page(200, "GET", path("projects", w.project)), "2100-01-31", "!2100-02-01")
	root.shows(root.page(200, "GET", "/audit?object=member&action=update"), "2100-01-31", "!2100-02-01")
	table := w.want(200, w.admin, "GET", path("projects", w.project, "members.csv"), "").raw
	if !strings.Contains(table, ",2100-01-31\n") || strings.Contains(table, "2100-02-01") {
		t.Errorf("the table of members: %s", table)
	}
	form := []string{"name", "speech", "ends_at", "2100-06-30"}
	for _, a := range []string{"gpu_cores", "gpu_memory_mib", "cpu_milli", "memory_mib", "storage_mib"} {
		form = append(form, "quota."+a, "0")
	}
	root.page(303, "POST", "/projects", form...)
	list := w.get(w.admin, "/projects?q=speech").body["items"].([]any)
	if got := list[0].(map[string]any)["ends_at"]; got != "2100-07-01T00:00:00Z" {
		t.Errorf("the API says the project ends at %v", got)
	}
	root.shows(root.page(200, "GET", "/projects"), "2100-06-30", "!2100-07-01")
}

// A workspace says in its last day when it stops, and why.
func TestWorkspaceSaysWhenItStops(t *testing.T) {
	w := newWorld(t)
	w.stopClock()
	ann := w.as("ann@example.org")
	w.member = w.token("ann@example.org")
	n := w.create(w.member, "/workspaces", fmt.Sprintf(`{"project_id":%d,"name":"a"}`, w.project))
	at := path("workspaces", n)
	if w.get(w.member, at).body["stops_at"] != nil {
		t.Error("it stops although nothing ends")
	}
	end := w.endIn(25 * time.Hour)
	ann.shows(ann.page(200, "GET", at), "!This workspace stops at")
	if got := w.get(w.member, at).body; got["stops_at"] != end.Format(time.RFC3339) || got["stops_because"] != "the project's period of use ends then" {
		t.Errorf("%v, %v", got["stops_at"], got["stops_because"])
	}
	until := w.untilIn(18 * time.Hour)
	ann.shows(ann.page(200, "GET", at), "This workspace stops at", until.Format("2006-01-02 15:04")+" UTC", "because the member&#39;s membership ends then. Its files are kept.", `name="deadline.until"`)
}

// Who has left stands on the project's page, and a manager hands the
// directory over.
func TestHandoverByPageAndProgram(t *testing.T) {
	w := newWorld(t)
	w.stopClock()
	boss, kim := w.as("boss@example.org"), w.visitor("kim@example.org", false)
	w.manager = w.token("boss@example.org")
	project := path("projects", w.project)
	small := w.create(w.admin, project+"/roles", `{"name":"small","permission":"member","limit":`+slice+`}`)
	heir := w.create(w.manager, project+"/members", fmt.Sprintf(`{"email":"kim@example.org","role_id":%d}`, small))
	handover, token := project+path("members", w.place, "handover"), w.token("kim@example.org")
	give := fmt.Sprintf(`{"to_member_id":%d}`, heir)

	boss.shows(boss.page(200, "GET", project), "!Former members")
	boss.shows(boss.page(200, "GET", project+"/former-members"), "No former members.")
	boss.page(404, "GET", handover)
	w.want(409, w.manager, "POST", handover, give)
	w.want(204, w.manager, "DELETE", project+path("members", w.place), "")
	dir := projects.DirectoryOf(w.project, w.place)
	for _, page := range []string{project, project + "/former-members"} {
		boss.shows(boss.page(200, "GET", page), "Former members", "ann@example.org", dir, "none", `href="`+handover+`"`)
		kim.shows(kim.page(200, "GET", page), "Former members", dir, "!Hand over…")
	}
	kim.page(403, "GET", handover)
	kim.page(403, "POST", handover, "to_member_id", id(heir))
	w.want(403, token, "POST", handover, give)
	w.want(404, w.stranger, "POST", handover, give)
	w.want(404, w.stranger, "GET", project+"/former-members", "")
	boss.shows(boss.page(200, "GET", handover), dir, "kim@example.org", `value="`+id(heir)+`"`)
	boss.shows(boss.page(422, "POST", handover, "to_member_id", "999"), `id="f-to_member_id-error"`)
	boss.shows(boss.page(422, "POST", handover, "to_member_id", "x"), `id="f-to_member_id-error"`)
	for _, bad := range []string{`{}`, `{"to_member_id":0}`, `{"to_member_id":"x"}`, `{"to_member_id":-1}`, `{"to_member_id":99999}`} {
		w.problem(w.want(422, w.manager, "POST", handover, bad))
	}
	boss.page(303, "POST", handover, "to_member_id", id(heir))

	items := w.get(token, project+"/former-members").body["items"].([]any)
	first := items[0].(map[string]any)
	if len(items) != 1 || first["path"] != dir || first["recipient"].(map[string]any)["member_id"] != float64(heir) {
		t.Errorf("%v", items)
	}
	boss.shows(boss.page(409, "POST", handover, "to_member_id", id(heir)), "This directory is already handed over to kim@example.org")
	boss.shows(boss.page(200, "GET", project), "End handover", "!Hand over…")
	if n := w.newest(token); n["kind"] != "handover.given" || !strings.Contains(n["text"].(string), dir) {
		t.Errorf("the heir is told %v", n)
	}
	n := w.create(token, "/workspaces", fmt.Sprintf(`{"project_id":%d,"name":"a"}`, w.project))
	kim.shows(kim.page(200, "GET", path("workspaces", n)), dir, "Handed over from a former member")
	if list := w.get(token, path("workspaces", n, "directories")); !strings.Contains(list.raw, `{"path":"`+dir+`","writable":true}`) {
		t.Errorf("directories: %s", list.raw)
	}
	boss.page(303, "POST", handover+"/end")
	boss.page(404, "POST", handover+"/end")
	if list := w.get(token, path("workspaces", n, "directories")); strings.Contains(list.raw, dir) {
		t.Errorf("still the heir's: %s", list.raw)
	}
	w.want(200, w.manager, "POST", handover, give)
	w.want(200, w.manager, "GET", handover, "")
	w.want(204, w.manager, "DELETE", handover, "")
	w.want(404, w.manager, "DELETE", handover, "")
}

// The list of those who have left is paged, on the page and by program; the
// project's own page shows the first.
func TestLeaversArePaged(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	at := path("projects", w.project)
	none := w.create(w.admin, at+"/roles", `{"name":"none","permission":"viewer"}`)
	for i := range 12 {
		email := fmt.Sprintf("gone%d@example.org", i)
		w.account(email, false)
		m := w.create(w.admin, at+"/members", fmt.Sprintf(`{"email":"%s","role_id":%d}`, email, none))
		w.want(204, w.admin, "DELETE", at+path("members", m), "")
	}
	root.shows(root.page(200, "GET", at), "gone9@example.org", "!gone10@example.org", at+"/former-members")
	root.shows(root.page(200, "GET", at+"/former-members"), "gone11@example.org")
	list := w.get(w.admin, at+"/former-members?limit=5")
	cursor, _ := list.body["next_cursor"].(string)
	if items := list.body["items"].([]any); len(items) != 5 || cursor == "" {
		t.Fatalf("%s", list.raw)
	}
	if rest := w.get(w.admin, at+"/former-members?cursor="+cursor); len(rest.body["items"].([]any)) != 7 || rest.body["next_cursor"] != nil {
		t.Errorf("%s", rest.raw)
	}
}
