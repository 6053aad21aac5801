package handlers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// bodies are the routes that take one, each with one that is good.
func (w *world) bodies() map[string]string {
	at := "/projects/" + id(w.project)
	return map[string]string{
		"POST /projects":                                       `{"name":"new","quota":` + some + `}`,
		"PUT " + at:                                            `{"name":"new","quota":` + plenty + `}`,
		"POST " + at + "/roles":                                `{"name":"new","permission":"member","limit":` + slice + `}`,
		"PUT " + at + "/roles/" + id(w.role):                   `{"name":"new","permission":"member","limit":` + some + `}`,
		"POST " + at + "/members":                              `{"email":"eve@example.org","role_id":2}`,
		"POST " + at + "/invitations":                          `{"emails":["new@example.org"],"role_id":2}`,
		"POST " + at + "/service-accounts":                     `{"name":"robot","role_id":2}`,
		"POST " + at + "/members/" + id(w.place) + "/tokens":   `{"name":"ci"}`,
		"POST /runs":                                           `{"project_id":` + id(w.project) + `,"command":["true"]}`,
		"POST /runs/preview":                                   `{"project_id":` + id(w.project) + `,"command":["true"]}`,
		"POST /runs/1/renew":                                   `{"worked":true}`,
		"POST /deployments":                                    `{"project_id":` + id(w.project) + `,"path":"/notebook/1/project_model"}`,
		"POST /deployments/1/v1/completions":                   `{"prompt":"a"}`,
		"POST /deployments/1/v1/chat/completions":              `{"messages":[{"role":"user","content":"a"}]}`,
		"POST /deployments/1/v1/embeddings":                    `{"input":"a"}`,
		"POST /deployments/1/v2/models/vit/infer":              inferBody,
		"POST /runs/1/signal":                                  `{"signal":"INT"}`,
		"PATCH /reservations/1":                                `{"ends_at":"2027-03-12T18:00:00Z"}`,
		"POST /reservations/1/preview":                         `{"ends_at":"2027-03-12T18:00:00Z"}`,
		"POST /invitations":                                    `{"emails":["new@example.org"]}`,
		"POST /invitations/accept":                             `{"token":"x","name":"new","password":"correct horse"}`,
		"POST /password":                                       `{"token":"x","password":"correct horse"}`,
		"POST /password/forgot":                                `{"email":"new@example.org"}`,
		"PUT " + at + "/members/" + id(w.place):                `{"role_id":2}`,
		"POST /environments":                                   `{"name":"new","language":"r","language_version":"4","command":["/bin/r"]}`,
		"PUT /environments/" + id(w.environment):               `{"name":"new","language":"r","language_version":"4","command":["/bin/r"]}`,
		"POST /users":                                          `{"name":"new","email":"new@example.org","password":"correct horse"}`,
		"PUT /users/1":                                         `{"name":"new","admin":true,"disabled":false}`,
		"PUT /users/1/password":                                `{"password":"correct horse"}`,
		"PUT /me":                                              `{"name":"x"}`,
		"POST /me/passkeys/ceremony":                           `{"password":"x"}`,
		"PUT /me/passkeys/1":                                   `{"name":"x"}`,
		"POST /me/passkeys":                                    `{"name":"x","ceremony":"x","credential":{}}`,
		"POST /me/second-factor":                               `{"password":"x"}`,
		"POST /me/second-factor/confirm":                       `{"code":"000000"}`,
		"POST /me/second-factor/recovery-codes":                `{"password":"x"}`,
		"POST /me/second-factor/disable":                       `{"password":"x","code":"000000"}`,
		"PUT /sign-in-policy":                                  `{"second_factor":"administrators"}`,
		"PUT /me/password":                                     `{"current":"x","password":"correct horse"}`,
		"POST /tokens":                                         `{"name":"new"}`,
		"POST /launch/preview":                                 `{"project_id":` + id(w.project) + `}`,
		"POST /workspaces":                                     `{"project_id":` + id(w.project) + `}`,
		"PUT /pool/devices/" + id(w.device):                    `{"sharing":"time-slicing","mixed":false}`,
		"POST /pool/authorizations":                            `{"gpu_code":"0123-4567-89AB-CDEF"}`,
		"PUT /pool/providers/1":                                `{"name":"here","terms":{}}`,
		"POST /pool/providers/1/recall":                        `{"grace_minutes":5}`,
		"POST /pool/planning":                                  `{"add":"h100:8"}`,
		"POST /graphs/plan":                                    `{"graph":"branches: [{name: a, operators: [{}]}]","cpus":8}`,
		"POST /barriers":                                       `{"ptx":".entry k() { bar.sync 0; }"}`,
		"POST /webhooks":                                       `{"name":"new","url":"https://example.org/hook","enabled":true}`,
		"PUT /webhooks/1":                                      `{"name":"new","url":"https://example.org/hook","enabled":true}`,
		"PUT /me/notification-preferences":                     `{"by_mail":true,"language":"zh"}`,
		"POST /requests":                                       `{"reason":"more","join":{"name":"vision"}}`,
		"POST /requests/1/decision":                            `{"decision":"refuse","reason":"no"}`,
		"PUT " + at + "/join-requests":                         `{"on":true}`,
		"PUT /capacity":                                        `{"ratio":` + plenty + `,"stated":{"cpu_milli":1}}`,
		"POST /departments":                                    `{"name":"new"}`,
		"POST /prices":                                         `{"model":"NVIDIA H200","billing":"on_demand","micros":1,"currency":"EUR"}`,
		"PUT /departments/1":                                   `{"name":"new"}`,
		"PUT /workspaces/1":                                    `{"name":"new"}`,
		"POST " + at + "/preview":                              `{"quota":` + plenty + `}`,
		"POST " + at + "/members/import":                       `{"csv":"email,role\neve@example.org,lead","dry_run":true}`,
		"POST " + at + "/members/" + id(w.place) + "/handover": `{"to_member_id":1}`,
		"POST " + at + "/files/directories":                    `{"path":"/notebook/1/project_model/new"}`,
		"POST " + at + "/files/copies":                         `{"from":"/notebook/1/project_model","to":"/notebook/1/x"}`,
		"POST " + at + "/files/moves":                          `{"from":"/notebook/1/project_model","to":"/notebook/1/x"}`,
		"PUT " + at + "/files/environment?path=/notebook/1/project_model": `{"environment":"any"}`,
		"POST " + at + "/split-presets":                                   `{"service_type":"new","split":"layers","combine":"pass_on","cuts":["model.layers.1"]}`,
		"POST /curators":                                                  `{"directory":"/public_model","project_id":1}`,
		"PUT " + at + "/files/rules":                                      fileRule(w.project),
		"POST " + at + "/files/rules/preview":                             fileRule(w.project),
		"POST /users/import":                                              `{"csv":"email,name\nnew@example.org,New","dry_run":true}`,
	}
}

func fileRule(project int64) string {
	return `{"path":"/notebook/` + id(project) + `/project_model","subject":"project","access":"read"}`
}

// refused sends a bad body and wants a 4xx problem and no change; it returns
// the fields that were named.
func (w *world) refused(route, body string, headers ...string) map[string]string {
	w.Helper()
	method, path, _ := strings.Cut(route, " ")
	before := fmt.Sprint(w.counts())
	a := w.send(w.admin, method, path, body, headers...)
	if a.status < 400 || a.status > 499 {
		w.Fatalf("%s %.200s: %d %s; log: %s", route, body, a.status, a.raw, w.log)
	}
	if after := fmt.Sprint(w.counts()); after != before {
		w.Errorf("%s %.200s changed something: %s, before %s", route, body, after, before)
	}
	return w.problem(a)
}

// Every route with a body refuses what is no object of its own.
func TestAPIRefusesBadBodies(t *testing.T) {
	w := newWorld(t)
	for route, good := range w.bodies() {
		for _, bad := range []string{"null", "[]", "1", `"x"`, "true", "{", "}", "{}x", "nul", "\x00", "{\"a\":\"\x01\"}", "\xff\xfe", `{"` + "\xff" + `":1}`,
			strings.Repeat("[", 9_000), strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 20_000), good + good,
			strings.Repeat(" ", maxImportBody) + good} {
			w.refused(route, bad)
		}
		method, path, _ := strings.Cut(route, " ")
		w.problem(w.want(400, w.admin, method, path, ""))
		w.problem(w.want(400, w.admin, method, path, "{"))
		w.problem(w.want(415, w.admin, method, path, good, "Content-Type", "text/plain"))
		w.problem(w.want(415, w.admin, method, path, "name=new", "Content-Type", "application/x-www-form-urlencoded"))
		unknown := strings.TrimSuffix(good, "}") + `,"colour":"red"}`
		if fields := w.refused(route, unknown); fields["colour"] == "" {
			t.Errorf("%s: an unknown field is not named: %v", route, fields)
		}
		for name := range object(t, good) {
			if fields := w.refused(route, strings.Replace(good, `"`+name+`"`, `"`+strings.ToUpper(name)+`"`, 1)); fields[strings.ToUpper(name)] == "" {
				t.Errorf("%s: %s in capitals is not named: %v", route, name, fields)
			}
			for _, value := range []string{`{"a":{"b":[1]}}`, `[[]]`, `1e400`, `1.5`, `-99999999999999999999`} {
				if name == "credential" && value[0] == '{' { // any object is one
					continue
				}
				fields := w.refused(route, strings.Replace(good, `"`+name+`":`, `"`+name+`":`+value+`,"x":`, 1))
				if !named(fields, name) {
					t.Errorf("%s: %s is %s: %v", route, name, value, fields)
				}
			}
		}
	}
}

// named tells whether a field, or a part of it, was refused.
func named(fields map[string]string, name string) bool {
	for field := range fields {
		if field == name || strings.HasPrefix(field, name+".") || strings.HasPrefix(field, name+"[") {
			return true
		}
	}
	return false
}

func TestAPINamesRefusedFields(t *testing.T) {
	w := newWorld(t)
	at := "/projects/" + id(w.project)
	quota := func(name, value string) string {
		return `{"name":"new","quota":{"` + name + `":` + value + `}}`
	}
	launch := func(request string) string { return `{"project_id":` + id(w.project) + `,"request":{` + request + `}}` }
	env := func(more string) string {
		return `{"name":"e","language":"r","language_version":"4","command":["/bin/r"],` + more + `}`
	}
	for _, c := range []struct{ route, body, field string }{
		{"POST /projects", `{"quota":` + some + `}`, "name"},
		{"POST /projects", `{"name":"new","quota":5}`, "quota"},
		{"POST /projects", quota("gpu_cores", `-1`), "quota.gpu_cores"},
		{"POST /projects", quota("gpu_cores", `"5"`), "quota.gpu_cores"},
		{"POST /projects", quota("cpu_milli", `9223372036854775808`), "quota.cpu_milli"},
		{"POST /projects", quota("cpu_milli", `9223372036854775807`), "quota.cpu_milli"},
		{"POST /projects", quota("memory_mib", `1e400`), "quota.memory_mib"},
		{"POST /projects", `{"name":"","quota":` + some + `}`, "name"},
		{"POST /projects", `{"name":"a\u0000b","quota":` + some + `}`, "name"},
		{"POST /projects", `{"name":"a\u202eb","quota":` + some + `}`, "name"},
		{"POST /projects", `{"name":"` + strings.Repeat("ä", 101) + `","quota":` + some + `}`, "name"},
		{"POST /projects", `{"name":"n","quota":` + some + `,"ends_at":"tomorrow"}`, "ends_at"},
		{"POST /projects", `{"name":"n","quota":` + some + `,"ends_at":"1999-01-01T00:00:00Z"}`, "ends_at"},
		{"POST /projects", `{"name":"n","quota":` + some + `,"starts_at":"0001-01-01T00:00:00Z"}`, "starts_at"},
		{"POST /projects", `{"name":"n","quota":` + some + `,"launch":{"env":{"LD_PRELOAD":"x"}}}`, "launch.env"},
		{"POST /projects", `{"name":"n","quota":` + some + `,"launch":{"env":{"A":1}}}`, "launch.env.A"},
		{"POST /projects", `{"name":"n","quota":` + some + `,"launch":{"cores":101}}`, "launch.cores"},
		{"POST " + at + "/roles", `{"name":"r","permission":"root","limit":` + some + `}`, "permission"},
		{"POST " + at + "/roles", `{"name":"r","permission":"member","limit":` + strings.Replace(some, "100", "100000", 1) + `}`, "limit.gpu_cores"},
		{"POST " + at + "/members", `{"email":"nobody@example.org","role_id":1}`, "email"},
		{"POST " + at + "/members", `{"email":"a\u0000@example.org","role_id":1}`, "email"},
		{"POST " + at + "/members", `{"role_id":1}`, "email"},
		{"POST " + at + "/members", `{"email":"eve@example.org","role_id":0}`, "role_id"},
		{"POST " + at + "/members", `{"email":"eve@example.org","role_id":999}`, "role_id"},
		{"POST " + at + "/members", `{"email":"ann@example.org","role_id":2}`, "email"},
		{"POST " + at + "/members", `{"email":"eve@example.org","role_id":2,"until":"1999-01-01T00:00:00Z"}`, "until"},
		{"POST /environments", `{"name":"e","language":"r","language_version":"4"}`, "command"},
		{"POST /environments", `{"name":"e","language":"r","language_version":"4","command":["sh"]}`, "command"},
		{"POST /environments", env(`"versions":{"a\u0000":"1"}`), "versions"},
		{"POST /environments", env(`"minimum":{"gpus":-1}`), "minimum.gpus"},
		{"POST /environments", env(`"default_path":"//evil.example"`), "default_path"},
		{"POST /users", `{"name":"n","email":"no address","password":"correct horse"}`, "email"},
		{"POST /users", `{"name":"n","email":"n@example.org","password":"short"}`, "password"},
		{"POST /users", `{"name":"n","email":"root@example.org","password":"correct horse"}`, "email"},
		{"PUT /me/password", `{"current":"wrong","password":"correct horse"}`, "current"},
		{"POST /tokens", `{"name":"n","lifetime":"forever"}`, "lifetime"},
		{"POST /tokens", `{"name":"n","lifetime":"-1h"}`, "lifetime"},
		{"POST /tokens", `{"name":"n","lifetime":"1ns"}`, "lifetime"},
		{"POST /tokens", `{"name":"n","lifetime":"9999999h"}`, "lifetime"},
		{"PUT /pool/devices/" + id(w.device), `{"sharing":"exclusive","mixed":true}`, "mixed"},
		{"PUT /pool/devices/" + id(w.device), `{"sharing":"alone","mixed":false}`, "sharing"},
		{"PUT /pool/devices/" + id(w.device), `{"sharing":"mig","mixed":false}`, "layout"},
		{"POST /pool/authorizations", `{"gpu_code":"0123"}`, "gpu_code"},
		{"POST /pool/authorizations", `{"gpu_code":"0123-4567-89AB-CDEF","owner_id":99}`, "owner_id"},
		{"POST /pool/authorizations", `{"gpu_code":"0123-4567-89AB-CDEF","name":"here"}`, "name"},
		{"PUT /pool/providers/1", `{"name":"","terms":{}}`, "name"},
		{"PUT /pool/providers/1", `{"name":"x","terms":{"cores":101}}`, "terms.cores"},
		{"PUT /pool/providers/1", `{"name":"x","terms":{"devices":[99]}}`, "terms.devices"},
		{"PUT /pool/providers/1", `{"name":"x","terms":{"projects":[99]}}`, "terms.projects"},
		{"PUT /pool/providers/1", `{"name":"x","terms":{"time_zone":"Here/There"}}`, "terms.time_zone"},
		{"PUT /pool/providers/1", `{"name":"x","terms":{"hours":[{"days":[],"from":"9","to":"10:00"}]}}`, "terms.hours[0].from"},
		{"PUT /pool/providers/1", `{"name":"x","terms":{"grace_minutes":-1}}`, "terms.grace_minutes"},
		{"PUT /pool/providers/1", `{"name":"x","owner_id":99,"terms":{}}`, "owner_id"},
		{"POST /pool/providers/1/recall", `{"grace_minutes":-1}`, "grace_minutes"},
		{"POST /pool/planning", `{"add":"toaster:4"}`, "add"},
		{"POST /barriers", `{"ptx":".entry k() { bar.sync %r1; }"}`, "ptx"},
		{"POST /barriers", `{"ptx":".entry k() { }","physical":17}`, "physical"},
		{"POST /barriers", `{"ptx":".entry k() { }","threads":-1}`, "threads"},
		{"POST /pool/planning", `{"add":"h100:8","days":9999}`, "days"},
		{"POST /pool/planning", `{"add":"h100:8","policy":"luck"}`, "policy"},
	} {
		if fields := w.refused(c.route, c.body); fields[c.field] == "" {
			t.Errorf("%s %s: %s is not named: %v", c.route, c.body, c.field, fields)
		}
	}
	w.admin = w.member // launching takes a member
	for body, field := range map[string]string{
		launch(`"cores":-1`):                                                    "request.cores",
		launch(`"gpus":1,"cores":101`):                                          "request.cores",
		launch(`"cpu_milli":9000000000000000000`):                               "request.cpu_milli",
		launch(`"cpu_milli":1`):                                                 "request.cpu_milli",
		launch(`"memory_mib":99999999`):                                         "request.memory_mib",
		launch(`"path":"//evil.example"`):                                       "request.path",
		launch(`"env":{"A":"x\u0000"}`):                                         "request.env",
		launch(`"gpu_model":"H\u0000"`):                                         "request.gpu_model",
		launch(`"gpus":1000000000000,"cores":100`):                              "request.gpus",
		launch(`"gpus":1024,"gpu_memory_mib":1000000000000`):                    "request.gpu_memory_mib",
		`{"project_id":` + id(w.project) + `,"when_insufficient":"never"}`:      "when_insufficient",
		`{"project_id":` + id(w.project) + `,"environment_id":-1}`:              "environment_id",
		`{"project_id":` + id(w.project) + `,"environment_id":999}`:             "environment_id",
		`{"project_id":` + id(w.project) + `,"version_constraints":"torch>>2"}`: "version_constraints",
		`{"project_id":` + id(w.project) + `,"name":"` + "\u200b" + `"}`:        "name",
		`{"project_id":0}`:                                                      "project_id",
	} {
		if fields := w.refused("POST /workspaces", body); fields[field] == "" {
			t.Errorf("POST /workspaces %s: %s is not named: %v", body, field, fields)
		}
	}
}

func TestAPINamesRefusedHosts(t *testing.T) {
	w := newWorld(t)
	for outgoing, field := range map[string]string{
		`{"access":"some"}`:                         "outgoing.access",
		`{"access":"listed","hosts":["127.0.0.1"]}`: "outgoing.hosts",
		`{"access":"listed","hosts":"127.0.0.1"}`:   "outgoing.hosts",
		`{"access":"none","hosts":["a.example"]}`:   "outgoing.hosts",
	} {
		body := `{"name":"n","quota":` + some + `,"outgoing":` + outgoing + `}`
		if fields := w.refused("POST /projects", body); fields[field] == "" {
			t.Errorf("%s: %s is not named: %v", body, field, fields)
		}
	}
}

// No id, query or header makes anything but an answer or a refusal.
func TestAPIRefusesBadParameters(t *testing.T) {
	w := newWorld(t)
	bodies := map[string]string{}
	for route, body := range w.bodies() {
		route, _, _ = strings.Cut(route, "?")
		bodies[route] = body
	}
	for _, op := range operationsOfDocument(t) {
		for _, bad := range []string{"0", "-1", "99999999999999999999", "9223372036854775807", "x", "1.0", "1e3", "%00", "%ff", "%2e%2e", "1%20", "0x1", "'"} {
			if !strings.Contains(op.path, "{") {
				continue
			}
			path := strings.NewReplacer("{id}", bad, "{role}", "1", "{member}", "1", "{model}", "vit").Replace(op.path)
			body := bodies[op.method+" "+strings.NewReplacer("{id}", "1", "{role}", id(w.role), "{member}", id(w.place), "{model}", "vit").Replace(op.path)]
			if a := w.send(w.admin, op.method, path, body); a.status != 404 && a.status != 422 {
				t.Errorf("%s %s: %d %s", op.method, path, a.status, a.raw)
			} else if fields := w.problem(a); a.status == 422 && body != "" && fields["id"] == "" {
				t.Errorf("%s %s: the id is not named: %v", op.method, path, fields)
			}
		}
	}
	for query, field := range map[string]string{
		"/projects?limit=0": "limit", "/projects?limit=201": "limit", "/projects?limit=x": "limit", "/projects?limit=99999999999999999999": "limit",
		"/projects?cursor=x": "cursor", "/projects?cursor=-1": "cursor", "/projects?cursor=99999999999999999999": "cursor", "/projects?cursor=%00": "cursor",
		"/projects?colour=red": "colour", "/workspaces?state=x": "state", "/workspaces?user_id=me": "user_id", "/workspaces?project_id=0": "project_id",
		"/environments?version_constraints=%3E%3E": "version_constraints", "/users?q=" + strings.Repeat("a", 201): "q",
	} {
		if fields := w.problem(w.want(422, w.admin, "GET", query, "")); fields[field] == "" {
			t.Errorf("%s: %s is not named: %v", query, field, fields)
		}
	}
	for _, fine := range []string{"/users?q=%00", "/users?q=%ff", "/users?q=%25_", "/projects?cursor=9223372036854775807", "/tokens?cursor=77", "/environments?version_constraints=%00x"} {
		if a := w.send(w.admin, "GET", fine, ""); a.status >= 500 {
			t.Errorf("%s: %d %s", fine, a.status, a.raw)
		}
	}
}

// A body that does not come to its end, or without a length, is refused too.
func TestAPIRefusesEndlessBodies(t *testing.T) {
	w := newWorld(t)
	for _, n := range []int{1_000_000, 1_048_575, 1_048_576, 1_048_577, 2_000_000} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", apiPrefix+"/projects", strings.NewReader(strings.Repeat(" ", n)+"{}"))
		r.ContentLength = -1
		r.Header.Set("Authorization", "Bearer "+w.admin)
		rec := httptest.NewRecorder()
		w.app.ServeHTTP(rec, r)
		if rec.Code != http.StatusRequestEntityTooLarge && rec.Code != http.StatusUnprocessableEntity {
			t.Errorf("%d bytes: %d %s", n, rec.Code, rec.Body)
		}
	}
}

func FuzzAPI(f *testing.F) {
	w := newWorld(f)
	f.Add([]byte(`{"name":"new","quota":` + some + `}`))
	f.Add([]byte(`{"project_id":1,"request":{"gpus":1,"cores":50,"env":{"A":"b"}},"when_insufficient":"wait"}`))
	f.Add([]byte(`{"project_id":1,"version_constraints":"python>=3.11","name":"\u0000"}`))
	f.Add([]byte(`{"name":1e400,"starts_at":"0000-01-01T00:00:00Z","ends_at":"9999-12-31T23:59:60Z"}`))
	f.Add([]byte("\xff[[[[{}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		for path, token := range map[string]string{"/projects": w.admin, "/workspaces": w.member} {
			if a := w.send(token, "POST", path, string(body)); a.status >= 500 {
				t.Errorf("POST %s %q: %d %s; log: %s", path, body, a.status, a.raw, w.log)
			}
		}
	})
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}
