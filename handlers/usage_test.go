package handlers

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A project's use, on its page, over REST and as a file.
func TestUsageByPageAndProgram(t *testing.T) {
	w := newWorld(t)
	at := path("projects", w.project)
	root, ann := w.visitor("ada@example.org", true), w.as("ann@example.org")
	w.member = w.token("ann@example.org")
	root.shows(root.page(200, "GET", at+"/usage"), "On average, 0 of 110 GPU cores allocated to members were in use", "By role", "By member", "ann@example.org", `aria-current="page"`, "!you see your own")
	week := "?from=" + w.store.Now().Add(-7*24*time.Hour).UTC().Format(time.RFC3339Nano)
	page := ann.page(200, "GET", at+"/usage"+week)
	ann.shows(page, "Usage of vision", "you see your own", "ann@example.org", "View as table")
	ann.page(422, "GET", at+"/usage?from=yesterday")
	ann.page(404, "GET", path("projects", int64(999))+"/usage")

	u := w.get(w.member, at+"/usage"+week)
	if steps := u.body["steps"].([]any); len(steps) != 28 || u.body["quota"].(map[string]any)["gpu_cores"] == 0.0 {
		t.Errorf("%s", u.raw)
	}
	last := u.body["steps"].([]any)[27].(map[string]any)
	if last["allocated"] == nil || last["quota"] == nil {
		t.Errorf("what stands allocated now is not in the last step: %v", last)
	}
	for query, field := range map[string]string{"from=yesterday": "from", "until=2026-13-01": "until", "from=2026-02-01&until=2026-01-01": "from", "from=2020-01-01": "from"} {
		if fields := w.problem(w.want(422, w.member, "GET", at+"/usage?"+query, "")); fields[field] == "" {
			t.Errorf("%s: %s is not named: %v", query, field, fields)
		}
	}
	if people := w.get(w.member, at+"/usage/people").body["items"].([]any); len(people) != 1 {
		t.Errorf("a member sees %d people", len(people))
	}
	if people := w.get(w.admin, at+"/usage/people").body["items"].([]any); len(people) < 2 {
		t.Errorf("an administrator sees %d people", len(people))
	}
	if file := w.get(w.member, at+"/usage.csv").raw; !strings.HasPrefix(file, "name,email,role,") || strings.Count(file, "\n") != 2 {
		t.Errorf("the file: %q", file)
	}
}

// The usage of all projects is for administrators and auditors, by page and over REST.
func TestUsageOfAllProjects(t *testing.T) {
	w := newWorld(t)
	w.create(w.admin, "/projects", `{"name":"idle","quota":{"gpu_cores":0}}`)
	root := w.visitor("ada@example.org", true)
	root.shows(root.page(200, "GET", "/usage?from=2026-01-01&until=2026-01-31"), "By project", "vision", "idle", `value="2026-01-31"`, path("projects", w.project)+"/usage?from=2026-01-01&amp;until=2026-01-31")
	w.problem(w.want(403, w.manager, "GET", "/usage", ""))
	u := w.get(w.admin, "/usage?from=2026-01-01&until=2026-01-31&limit=1")
	first := u.body["items"].([]any)[0].(map[string]any)
	if u.body["from"] != "2026-01-01T00:00:00Z" || u.body["until"] != "2026-02-01T00:00:00Z" || first["project"] != "vision" ||
		first["quota_fraction"].(map[string]any)["gpu_cores"] != 0.0 || first["total_fraction"].(map[string]any)["gpu_cores"] != nil {
		t.Errorf("%s", u.raw)
	}
	second := w.get(w.admin, "/usage?limit=1&cursor="+u.body["next_cursor"].(string))
	if items := second.body["items"].([]any); len(items) != 1 || items[0].(map[string]any)["project"] != "idle" || second.body["next_cursor"] != nil {
		t.Errorf("the second page: %s", second.raw)
	}
}

// The console's projects: chosen, ordered, as a file, and wrong input.
func TestProjectConsole(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"=cmd|' /C calc'!A0", "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"} {
		w.create(w.admin, "/projects", `{"name":"`+name+`","quota":{"gpu_cores":`+id(int64(100*len(name)))+`}`+beyond+`}`)
	}
	root := w.visitor("ada@example.org", true)
	page := root.page(200, "GET", "/projects?sort=quota&order=desc")
	root.shows(page, `aria-sort="descending"`, `name="q"`, "projects.csv?order=desc&amp;sort=quota")
	if i, j := strings.Index(page, ">epsilon<"), strings.Index(page, ">eta<"); i < 0 || i > j {
		t.Error("the larger quota does not come first")
	}
	root.shows(root.page(200, "GET", "/projects?q=ALPH"), ">alpha<", "!>beta<")
	root.shows(root.page(200, "GET", "/projects?q=nothing"), "No matching projects.", "Clear filters")
	root.page(422, "GET", "/projects?sort=password")
	root.page(422, "GET", "/projects?state=x")
	w.want(422, w.admin, "GET", "/projects?sort=password", "")

	items := w.get(w.admin, "/projects?sort=name&limit=2").body
	names := ""
	for {
		for _, p := range items["items"].([]any) {
			names += p.(map[string]any)["name"].(string) + " "
		}
		next, more := items["next_cursor"].(string)
		if !more {
			break
		}
		items = w.get(w.admin, "/projects?sort=name&limit=2&cursor="+next).body
	}
	if !strings.HasPrefix(names, "=cmd") || !strings.Contains(names, "alpha beta delta epsilon eta gamma iota") {
		t.Errorf("by name: %s", names)
	}
	file := w.get(w.admin, "/projects.csv?sort=name").raw
	if !strings.HasPrefix(file, "id,name,starts_at,") || !strings.Contains(file, ",'=cmd|' /C calc'!A0,") || strings.Count(file, "\n") != strings.Count(names, " ")-2+1 {
		t.Errorf("the file: %s", file)
	}
}

// What would fit now is the same on the page and over REST, and what it leads
// to is the launch form with those numbers.
func TestAvailableByPageAndProgram(t *testing.T) {
	w := newWorld(t)
	at := path("projects", w.project)
	ann := w.as("ann@example.org")
	w.member = w.token("ann@example.org")
	list := w.get(w.member, at+"/available").body["items"].([]any)
	now := 0
	for _, one := range list {
		f := one.(map[string]any)
		if f["outcome"] == "granted" {
			now++
			if f["simulated"] != true {
				t.Errorf("not called simulated: %v", f)
			}
		} else if len(f["reasons"].([]any)) == 0 {
			t.Errorf("no reason: %v", f)
		}
	}
	if now == 0 || now == len(list) {
		t.Fatalf("%d of %d fit", now, len(list))
	}
	page := ann.page(200, "GET", at)
	ann.shows(page, "Available now", "/launch?project_id="+id(w.project)+"&amp;gpus=1&amp;cores=50", "simulated")
	ann.shows(ann.page(200, "GET", "/"), "Available now", `class="chip"`)
	ann.shows(ann.page(200, "GET", "/launch?project_id="+id(w.project)+"&gpus=1&cores=50"), `value="50"`)
	w.want(403, w.admin, "GET", at+"/available", "")
	w.want(404, w.member, "GET", path("projects", int64(999))+"/available", "")
}

// A span that is refused stays in the form, with the reason, above the default one; the tabs lead to spans until now.
func TestRefusedSpan(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	for _, page := range []string{"/usage", "/accounting", path("projects", w.project, "usage"), path("projects", w.project, "accounting")} {
		refused := root.page(422, "GET", page+"?from=2026-02-01&until=2026-01-01")
		root.shows(refused, `value="2026-02-01"`, `value="2026-01-01"`, "Must be before the end of the time range", "!csv?from=2026-02-01")
		root.shows(root.page(422, "GET", page+"?until=0000-01-05"), "Must be between the years 1970 and 9999")
	}
	week := regexp.MustCompile(`from=([0-9TZ%A-F-]+)[^0-9TZ%A-F-]+7 days`).FindStringSubmatch(root.page(200, "GET", "/usage?from=2026-01-01&until=2026-01-31"))
	if week == nil {
		t.Fatal("no tab of 7 days")
	}
	text, err := url.QueryUnescape(week[1])
	from, err2 := time.Parse(time.RFC3339, text)
	if err := errors.Join(err, err2); err != nil || w.store.Now().Sub(from).Round(24*time.Hour) != 7*24*time.Hour {
		t.Errorf("the last 7 days begin at %s, %v", text, err)
	}
	root.page(422, "GET", "/access?user_id=abc&right=workspace:launch")
}
