package handlers

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestAPIAccount(t *testing.T) {
	w := newWorld(t)
	me := w.get(w.member, "/me")
	place := me.body["memberships"].([]any)[0].(map[string]any)
	if me.body["email"] != "ann@example.org" || me.body["admin"] != false || place["role"] != "engineer" ||
		place["remaining"].(map[string]any)["gpu_cores"] != 100.0 {
		t.Errorf("me: %s", me.raw)
	}
	made := w.want(201, w.member, "POST", "/tokens", `{"name":"ci","lifetime":"24h"}`)
	secret := made.body["secret"].(string)
	w.get(secret, "/me")
	if list := w.get(w.member, "/tokens"); strings.Contains(list.raw, secret) || len(list.body["items"].([]any)) != 2 {
		t.Errorf("tokens: %s", list.raw)
	}
	token := id(int64(made.body["id"].(float64)))
	w.problem(w.want(404, w.stranger, "DELETE", "/tokens/"+token, ""))
	w.want(204, w.member, "DELETE", "/tokens/"+token, "")
	w.want(401, secret, "GET", "/me", "")
	w.problem(w.want(409, w.member, "POST", "/tokens", `{"name":"test"}`))
}

func TestAPIPasswordEndsTokens(t *testing.T) {
	w := newWorld(t)
	u := w.create(w.admin, "/users", `{"email":"Kim@Example.org","name":"Kim","password":"correct horse"}`)
	if got := w.get(w.admin, "/users/"+id(u)); got.body["email"] != "kim@example.org" {
		t.Errorf("user: %s", got.raw)
	}
	kim := w.token("kim@example.org")
	w.problem(w.want(422, kim, "PUT", "/me/password", `{"current":"wrong","password":"another horse"}`))
	w.want(204, kim, "PUT", "/me/password", `{"current":"correct horse","password":"another horse"}`)
	w.want(401, kim, "GET", "/me", "")
	kim = w.token("kim@example.org")
	w.want(403, kim, "PUT", "/users/"+id(u)+"/password", `{"password":"a third horse"}`)
	w.want(204, w.admin, "PUT", "/users/"+id(u)+"/password", `{"password":"a third horse"}`)
	w.want(401, kim, "GET", "/me", "")
	kim = w.token("kim@example.org")
	w.want(200, w.admin, "PUT", "/users/"+id(u), `{"name":"Kim","admin":false,"disabled":true}`)
	w.want(401, kim, "GET", "/me", "")
	if list := w.get(w.admin, "/users?q=kim"); len(list.body["items"].([]any)) != 1 {
		t.Errorf("users: %s", list.raw)
	}
	w.problem(w.want(403, w.member, "GET", "/users", ""))
}

func TestAPIProject(t *testing.T) {
	w := newWorld(t)
	at := "/projects/" + id(w.project)
	p := w.get(w.member, at)
	if p.body["allocated"].(map[string]any)["gpu_cores"] != 110.0 || p.body["remaining"].(map[string]any)["gpu_cores"] != 90.0 {
		t.Errorf("project: %s", p.raw)
	}
	w.problem(w.want(403, w.manager, "PUT", at, `{"name":"vision","quota":`+plenty+`}`))
	fields := w.problem(w.want(409, w.admin, "PUT", at, `{"name":"vision","quota":`+slice+`}`))
	if fields["quota.gpu_cores"] == "" {
		t.Errorf("a quota below the limits: %v", fields)
	}
	changed := w.want(200, w.admin, "PUT", at, `{"name":"vision 2","quota":`+plenty+`,"ends_at":"2100-01-01T02:00:00+02:00"}`)
	if changed.body["name"] != "vision 2" || changed.body["ends_at"] != "2100-01-01T00:00:00Z" || changed.header.Get("ETag") != `"2"` {
		t.Errorf("changed: %v %s", changed.header, changed.raw)
	}
	full := w.want(409, w.admin, "POST", at+"/members", `{"email":"eve@example.org","role_id":`+id(w.role)+`}`)
	if w.problem(full)["role_id"] == "" || !strings.Contains(full.raw, "; 90 of the project's quota of 200 remaining") {
		t.Errorf("rule 1 does not say what is left: %s", full.raw)
	}
	w.problem(w.want(409, w.manager, "DELETE", at+"/roles/"+id(w.role), ""))
	spare := w.create(w.manager, at+"/roles", `{"name":"guest","permission":"member","limit":`+slice+`}`)
	w.want(200, w.manager, "PUT", at+"/members/"+id(w.place), `{"role_id":`+id(spare)+`}`)
	if m := w.get(w.manager, at+"/members/"+id(w.place)); m.body["role"] != "guest" {
		t.Errorf("member: %s", m.raw)
	}
	w.want(204, w.manager, "DELETE", at+"/members/"+id(w.place), "")
	w.problem(w.want(404, w.member, "GET", at, ""))
	w.problem(w.want(404, w.manager, "GET", at+"/members/"+id(w.place), ""))
	w.want(204, w.manager, "DELETE", at+"/roles/"+id(w.create(w.manager, at+"/roles", `{"name":"x","permission":"member","limit":`+slice+`}`)), "")
	if audit := w.get(w.admin, "/audit?limit=1"); audit.body["items"].([]any)[0].(map[string]any)["action"] != "delete" {
		t.Errorf("audit: %s", audit.raw)
	}
	w.problem(w.want(403, w.manager, "GET", "/audit", ""))
}

func TestAPIEnvironment(t *testing.T) {
	w := newWorld(t)
	w.create(w.admin, "/environments", `{"name":"Old","language":"python","language_version":"3.9.2","command":["/usr/bin/jupyter"]}`)
	items := w.get(w.member, "/environments?version_constraints="+url.QueryEscape("python>=3.11, torch")).body["items"].([]any)
	best, rest := items[0].(map[string]any), items[1].(map[string]any)
	if best["matches"] != true || best["name"] != "Python" || rest["matches"] != false || len(rest["reasons"].([]any)) != 2 {
		t.Errorf("matched: %v", items)
	}
	if all := w.get(w.member, "/environments"); strings.Contains(all.raw, `"matches"`) {
		t.Errorf("nothing was wanted: %s", all.raw)
	}
	w.problem(w.want(403, w.member, "DELETE", "/environments/"+id(w.environment), ""))
	w.want(204, w.admin, "DELETE", "/environments/"+id(w.environment), "")
	w.problem(w.want(404, w.admin, "GET", "/environments/"+id(w.environment), ""))
}

func (w *world) launch(token, more string) answer {
	w.Helper()
	return w.send(token, "POST", "/workspaces", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":50}`+more+`}`)
}

func TestAPIWorkspace(t *testing.T) {
	w := newWorld(t)
	preview := w.want(200, w.member, "POST", "/launch/preview", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":50}}`)
	if preview.body["decision"].(map[string]any)["outcome"] != "granted" || len(preview.body["problems"].([]any)) != 0 {
		t.Errorf("preview: %s", preview.raw)
	}
	made := w.launch(w.member, "")
	if made.status != 201 || made.body["state"] != "starting" || made.body["simulated"] != true {
		t.Fatalf("launched: %d %s", made.status, made.raw)
	}
	n := int64(made.body["id"].(float64))
	at := "/workspaces/" + id(n)
	w.problem(w.want(409, w.member, "POST", at+"/open", ""))
	w.running(n)
	opening := w.want(200, w.member, "POST", at+"/open", "")
	if !strings.HasPrefix(opening.body["url"].(string), "http://ws-"+id(n)+".localhost:8080/.weir/open?token=") || opening.body["expires_in_seconds"] != 30.0 {
		t.Errorf("opening: %s", opening.raw)
	}
	if page := w.want(200, w.member, "POST", at+"/open?path=/code/?a%3Db", ""); !strings.HasSuffix(page.body["url"].(string), "&path=%2Fcode%2F%3Fa%3Db") {
		t.Errorf("opening a page: %s", page.raw)
	}
	for _, path := range []string{"//evil.example", "lab", "/" + strings.Repeat("a", 2000)} {
		if p := w.want(422, w.member, "POST", at+"/open?path="+path, ""); !strings.Contains(p.raw, `"path"`) {
			t.Errorf("opening %.20s: %s", path, p.raw)
		}
	}
	if apps := w.get(w.member, at).body["apps"]; fmt.Sprint(apps) != "[map[name:Jupyter path:/]]" {
		t.Errorf("apps: %v", apps)
	}
	w.problem(w.want(403, w.manager, "POST", at+"/open", ""))
	if log := w.get(w.member, at+"/log"); log.status != 200 {
		t.Errorf("log: %s", log.raw)
	}
	w.problem(w.want(403, w.manager, "GET", at+"/log", ""))
	if named := w.want(200, w.member, "PUT", at, `{"name":" training "}`); named.body["name"] != "training" || named.body["state"] != "running" {
		t.Errorf("renamed: %s", named.raw)
	}
	tag := w.get(w.member, at).header.Get("ETag")
	w.want(200, w.member, "PUT", at, `{"name":"first"}`, "If-Match", tag)
	w.problem(w.want(412, w.member, "PUT", at, `{"name":"second"}`, "If-Match", tag))
	if named := w.get(w.member, at); named.body["name"] != "first" {
		t.Errorf("after an outdated If-Match: %s", named.raw)
	}
	w.problem(w.want(422, w.member, "PUT", at, `{"name":" "}`))
	if dirs := w.get(w.manager, at+"/directories"); len(dirs.body["items"].([]any)) < 5 || strings.Contains(dirs.raw, "/tmp") {
		t.Errorf("directories: %s", dirs.raw)
	}
	for token, n := range map[string]int{w.manager: 0, w.member: 1} {
		owner := id(int64(w.get(token, "/me").body["id"].(float64)))
		if list := w.get(w.manager, "/workspaces?user_id="+owner); len(list.body["items"].([]any)) != n {
			t.Errorf("workspaces of %s: %s", owner, list.raw)
		}
	}
	if list := w.get(w.manager, "/workspaces?state=all&project_id="+id(w.project)); len(list.body["items"].([]any)) != 1 {
		t.Errorf("the project's: %s", list.raw)
	}
	if stopped := w.want(202, w.manager, "POST", at+"/stop", ""); stopped.body["state"] != "stopping" {
		t.Errorf("stopped: %s", stopped.raw)
	}
	w.problem(w.want(409, w.manager, "POST", at+"/stop", ""))
}

func TestAPIShortLaunchOffers(t *testing.T) {
	w := newWorld(t)
	for i := range 2 { // an exclusive device for somebody else, and half of the other
		w.want(200, w.admin, "PUT", "/pool/devices/"+id(int64(i+1)), `{"sharing":"exclusive","mixed":false}`)
	}
	rival := w.create(w.admin, "/projects", `{"name":"rival","quota":`+plenty+beyond+`}`)
	at := "/projects/" + id(rival)
	role := w.create(w.admin, at+"/roles", `{"name":"all","permission":"member","limit":`+plenty+`}`)
	w.create(w.admin, at+"/members", `{"email":"eve@example.org","role_id":`+id(role)+`}`)
	w.want(201, w.stranger, "POST", "/workspaces", `{"project_id":`+id(rival)+`,"request":{"gpus":2,"cores":60}}`)
	short := w.launch(w.member, "")
	w.problem(short)
	if short.status != 409 || short.body["offer"].(map[string]any)["outcome"] != "delayed" {
		t.Fatalf("short: %d %s", short.status, short.raw)
	}
	queued := w.launch(w.member, `,"when_insufficient":"wait"`)
	if queued.status != 201 || queued.body["state"] != "queued" || queued.body["position"] != 1.0 {
		t.Fatalf("queued: %d %s", queued.status, queued.raw)
	}
	view := w.get(w.member, "/pool")
	if strings.Contains(view.raw, "rival") || strings.Contains(view.raw, "eve@") || !strings.Contains(view.raw, `"anonymous":true`) {
		t.Errorf("a foreign project shows in the pool: %s", view.raw)
	}
	if d := w.get(w.stranger, "/pool/devices/1"); !strings.Contains(d.raw, "rival") || !strings.HasPrefix(d.header.Get("ETag"), `"2-`) {
		t.Errorf("device: %v %s", d.header, d.raw)
	}
}

// Every update refuses a version that is not the present one with 412, and
// takes the present one, any and none.
func TestAPIConditionalUpdates(t *testing.T) {
	w := newWorld(t)
	u := w.create(w.admin, "/users", `{"email":"kim@example.org","name":"Kim","password":"correct horse"}`)
	at := "/projects/" + id(w.project)
	for path, body := range map[string]string{
		"/users/" + id(u):                    `{"name":"Kim","admin":false,"disabled":false}`,
		at:                                   `{"name":"vision","quota":` + plenty + `}`,
		at + "/roles/" + id(w.role):          `{"name":"engineer","permission":"member","limit":` + some + `}`,
		at + "/members/" + id(w.place):       `{"role_id":` + id(w.role) + `}`,
		"/environments/" + id(w.environment): `{"name":"P","language":"python","language_version":"3","command":["/bin/j"]}`,
		"/pool/devices/" + id(w.device):      `{"sharing":"time-slicing","mixed":true}`,
		"/pool/providers/1":                  `{"name":"here","terms":{"cores":90}}`,
	} {
		tag := w.get(w.admin, path).header.Get("ETag")
		next := w.want(200, w.admin, "PUT", path, body, "If-Match", tag).header.Get("ETag")
		version, _, hashed := strings.Cut(w.get(w.admin, path).header.Get("ETag"), "-")
		if !hashed || next == tag || next != version+`"` {
			t.Errorf("%s: %s became %s", path, tag, next)
		}
		for _, old := range []string{tag, `"9223372036854775807"`, `"other"`, `"0"`, `"-1"`} {
			a := w.want(412, w.admin, "PUT", path, body, "If-Match", old)
			if w.problem(a); a.body["kind"] != "conflict" {
				t.Errorf("%s If-Match %s: %s", path, old, a.raw)
			}
		}
		if fields := w.problem(w.want(422, w.admin, "PUT", path, body, "If-Match", "3")); fields["If-Match"] == "" {
			t.Errorf("%s: a bare If-Match: %v", path, fields)
		}
		w.want(200, w.admin, "PUT", path, body, "If-Match", "*")
		w.want(200, w.admin, "PUT", path, body)
		w.want(404, w.admin, "PUT", strings.TrimRight(path, "0123456789")+"999", body, "If-Match", `"1"`)
	}
	w.create(w.admin, "/projects", `{"name":"taken","quota":`+some+beyond+`}`)
	w.want(409, w.admin, "PUT", at, `{"name":"taken","quota":`+plenty+`}`, "If-Match", w.get(w.admin, at).header.Get("ETag"))
}

func TestAPIPages(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.create(w.admin, "/projects", fmt.Sprintf(`{"name":"p%d","quota":%s}`, i, some+beyond))
		w.create(w.admin, "/environments", fmt.Sprintf(`{"name":"e%d","language":"r","language_version":"4","command":["/bin/r"]}`, i))
		w.want(201, w.admin, "POST", "/tokens", fmt.Sprintf(`{"name":"t%d"}`, i))
	}
	for path, total := range map[string]int{"/projects": 6, "/environments": 6, "/tokens": 6, "/users": 4,
		"/projects/" + id(w.project) + "/roles": 2, "/projects/" + id(w.project) + "/members": 2} {
		for limit := 1; limit <= total+1; limit++ {
			if got := w.walk(path, limit); got != total {
				t.Errorf("%s by %d: %d different items, want %d", path, limit, got, total)
			}
		}
	}
}

// walk follows a list to its end and counts the items; none comes twice, and
// no page but the first is empty.
func (w *world) walk(path string, limit int) int {
	w.Helper()
	seen := map[any]bool{}
	for cursor := ""; ; {
		a := w.get(w.admin, fmt.Sprintf("%s?limit=%d%s", path, limit, cursor))
		items := a.body["items"].([]any)
		if len(items) == 0 && cursor != "" {
			w.Errorf("%s by %d: an empty page", path, limit)
		}
		for _, item := range items {
			seen[item.(map[string]any)["id"]] = true
		}
		next, more := a.body["next_cursor"].(string)
		if !more {
			return len(seen)
		}
		cursor = "&cursor=" + next
	}
}

// What is foreign answers as if it did not exist.
func TestAPIRefusesATakenName(t *testing.T) {
	w := newWorld(t)
	launch := `{"project_id":` + id(w.project) + `,"request":{"gpus":0},"name":`
	w.want(201, w.member, "POST", "/workspaces", launch+`"first"}`)
	second := w.want(201, w.member, "POST", "/workspaces", launch+`"second"}`)
	at := "/workspaces/" + id(int64(second.body["id"].(float64)))
	w.problem(w.want(409, w.member, "PUT", at, `{"name":"first"}`))
	w.want(202, w.member, "POST", "/workspaces/1/stop", "")
	if name := w.get(w.member, at).body["name"]; name != "second" {
		t.Errorf("it is called %v", name)
	}
}

func TestAPIForeign(t *testing.T) {
	w := newWorld(t)
	n := int64(w.launch(w.member, "").body["id"].(float64))
	at, role := "/projects/"+id(w.project), `{"name":"r","permission":"member","limit":`+slice+`}`
	before := w.counts()
	for _, c := range []struct{ method, path, body string }{
		{"GET", at, ""}, {"PUT", at, `{"name":"x","quota":` + some + `}`},
		{"GET", at + "/roles", ""}, {"POST", at + "/roles", role}, {"GET", at + "/roles/" + id(w.role), ""},
		{"PUT", at + "/roles/" + id(w.role), role}, {"DELETE", at + "/roles/" + id(w.role), ""},
		{"GET", at + "/members", ""}, {"POST", at + "/members", `{"email":"eve@example.org","role_id":1}`},
		{"GET", at + "/members/" + id(w.place), ""}, {"PUT", at + "/members/" + id(w.place), `{"role_id":1}`},
		{"DELETE", at + "/members/" + id(w.place), ""},
		{"GET", "/workspaces/" + id(n), ""}, {"POST", "/workspaces/" + id(n) + "/stop", ""}, {"POST", "/workspaces/" + id(n) + "/open", ""},
		{"GET", "/workspaces/" + id(n) + "/directories", ""}, {"GET", "/workspaces/" + id(n) + "/log", ""},
		{"PUT", "/workspaces/" + id(n), `{"name":"x"}`},
		{"POST", "/launch/preview", `{"project_id":` + id(w.project) + `}`}, {"POST", "/workspaces", `{"project_id":` + id(w.project) + `}`},
	} {
		foreign := w.want(404, w.stranger, c.method, c.path, c.body)
		w.problem(foreign)
		unknown := strings.NewReplacer("/projects/"+id(w.project), "/projects/999", "/workspaces/"+id(n), "/workspaces/999").Replace(c.path)
		body := strings.Replace(c.body, `"project_id":`+id(w.project), `"project_id":999`, 1)
		if same := w.want(404, w.stranger, c.method, unknown, body); same.raw != foreign.raw {
			t.Errorf("%s %s tells foreign from unknown:\n%s%s", c.method, c.path, foreign.raw, same.raw)
		}
	}
	if after := w.counts(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("a stranger changed something: %v, before %v", after, before)
	}
	if list := w.get(w.stranger, "/workspaces?project_id="+id(w.project)); len(list.body["items"].([]any)) != 0 {
		t.Errorf("foreign workspaces: %s", list.raw)
	}
}

func TestAPIUnauthenticated(t *testing.T) {
	w := newWorld(t)
	for _, op := range operationsOfDocument(t) {
		path := strings.NewReplacer("{id}", "1", "{role}", "1", "{member}", "1").Replace(op.path)
		for _, token := range []string{"", "weir_wrong"} {
			if security, _ := op.spec["security"].([]any); len(security) > 0 && len(security[0].(map[string]any)) == 0 && token == "" { // public: see TestInvitationsOverREST
				w.want(400, token, op.method, path, "")
				continue
			}
			a := w.want(401, token, op.method, path, "")
			if w.problem(a); a.header.Get("WWW-Authenticate") != "Bearer" || a.body["kind"] != "unauthenticated" {
				t.Errorf("%s %s: %v %s", op.method, path, a.header, a.raw)
			}
		}
	}
	w.problem(w.want(404, w.member, "GET", "/nothing", ""))
	w.problem(w.want(404, "", "GET", "/nothing", ""))
	w.problem(w.want(405, w.member, "PATCH", "/projects", "{}"))
}

// A browser's session works too, and goes on after the password has changed,
// which ends the sessions of other browsers.
func TestAPIWithSession(t *testing.T) {
	w := newWorld(t)
	w.create(w.admin, "/users", `{"email":"kim@example.org","name":"Kim","password":"correct horse"}`)
	cookie := w.signIn("kim@example.org", "correct horse")
	w.want(200, "", "GET", "/me", "", "Cookie", cookie)
	w.problem(w.want(403, "", "POST", "/tokens", `{"name":"x"}`, "Cookie", cookie, "Sec-Fetch-Site", "cross-site"))
	other := w.signIn("kim@example.org", "correct horse")
	w.want(200, "", "GET", "/me", "", "Cookie", other)
	a := w.want(204, "", "PUT", "/me/password", `{"current":"correct horse","password":"another horse"}`, "Cookie", cookie)
	w.want(401, "", "GET", "/me", "", "Cookie", cookie)
	w.want(401, "", "GET", "/me", "", "Cookie", other)
	renewed, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	w.want(200, "", "GET", "/me", "", "Cookie", renewed)
}

func TestAPITimesAreUTC(t *testing.T) {
	w := newWorld(t)
	text := w.get(w.member, "/projects/"+id(w.project)).body["created_at"].(string)
	if at, err := time.Parse(time.RFC3339, text); err != nil || !strings.HasSuffix(text, "Z") || time.Since(at) > time.Hour {
		t.Errorf("created_at is %q: %v", text, err)
	}
}
