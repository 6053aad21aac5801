package handlers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/authority"
	"weir/pool/providers"
)

// rig is a machine with GPUs and an agent, as far as the portal hears it.
type rig struct {
	*world
	digest  string
	devices []providers.DeviceReport
	key     []byte
	holder  authority.Peer
	token   string
	id      int64 // of its provider
}

func (w *world) rig(name string, gpus int) *rig {
	w.Helper()
	r := &rig{world: w, digest: providers.MachineDigest(name), key: must(authority.NewKey())(w)}
	for i := range gpus {
		r.devices = append(r.devices, providers.DeviceReport{UUID: fmt.Sprintf("GPU-%s-%d", name, i), Index: i, Minor: i, Model: "NVIDIA H100",
			MemoryMiB: 81920, Simulated: true, NUMA: 1, MIGProfiles: []string{"1g.10gb", "3g.40gb"}, ECC: "on", ECCErrors: 2})
	}
	return r
}

// enrol uses an authorization code.
func (r *rig) enrol(code string) {
	r.Helper()
	csr := must(authority.NewRequest(r.key))(r)
	out := must(r.app.Enrollment.Redeem(r.Context(), providers.Redemption{Code: code, CSR: string(csr), Name: "rig", Machine: r.digest, Devices: r.devices}, "192.0.2.7"))(r)
	r.token, r.holder = out.Token, authority.PeerOf(must(authority.ParseCertificate([]byte(out.Certificate)))(r))
	r.id = must(r.store.Read(r.Context()).ProviderByMachine(r.digest))(r).ID
}

func (r *rig) code() string { return providers.GPUCodeOf(r.digest, r.devices) }

// beat says what there is, and what was measured.
func (r *rig) beat(samples ...providers.Sample) {
	r.Helper()
	r.token = must(r.app.Enrollment.Heartbeat(r.Context(), r.holder, providers.Heartbeat{Token: r.token, GPUCode: r.code(), Devices: r.devices, Samples: samples}, "192.0.2.7"))(r).Token
}

// enrolled is a rig whose code came from the API.
func (w *world) enrolled(name string, gpus int) *rig {
	w.Helper()
	r := w.rig(name, gpus)
	a := w.want(201, w.admin, "POST", "/pool/authorizations", `{"gpu_code":"`+r.code()+`","name":"`+name+`"}`)
	r.enrol(a.body["code"].(string))
	return r
}

// visitor is somebody at a browser without scripts.
type visitor struct {
	*world
	cookie string
}

// visitor signs a new account in.
func (w *world) visitor(email string, admin bool) visitor {
	w.Helper()
	w.create(w.admin, "/users", fmt.Sprintf(`{"email":%q,"name":%q,"password":"correct horse","admin":%t}`, email, email, admin))
	return visitor{w, w.signIn(email, "correct horse")}
}

// page asks for a page, or posts a form to it, and wants a status.
func (v visitor) page(status int, method, path string, form ...string) string {
	v.Helper()
	values := url.Values{}
	for i := 0; i < len(form); i += 2 {
		if name, more := strings.CutPrefix(form[i], "+"); more { // one of several boxes
			values.Add(name, form[i+1])
		} else {
			values.Set(form[i], form[i+1])
		}
	}
	r := httptest.NewRequestWithContext(v.Context(), method, path, strings.NewReader(values.Encode()))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("Cookie", v.cookie)
	rec := httptest.NewRecorder()
	v.app.ServeHTTP(rec, r)
	if rec.Code != status {
		v.Fatalf("%s %s %v: %d, want %d\n%s\nlog: %s", method, path, form, rec.Code, status, rec.Body, v.log)
	}
	return rec.Body.String()
}

// shows wants texts on a page; those that begin with ! must not be there.
func (v visitor) shows(page string, texts ...string) {
	v.Helper()
	for _, text := range texts {
		unwanted, not := strings.CutPrefix(text, "!")
		if strings.Contains(page, unwanted) == not {
			v.Errorf("%q: found %t in\n%s", unwanted, not, page)
		}
	}
}

func (w *world) provider(token string, id int64) map[string]any {
	w.Helper()
	return w.get(token, fmt.Sprintf("/pool/providers/%d", id)).body
}

// An administrator adds a machine by the page, and it is there on the page
// and in the API.
func TestAddProvider(t *testing.T) {
	w := newWorld(t)
	root, ann := w.visitor("ada@example.org", true), w.visitor("bob@example.org", false)
	r := w.rig("desk", 2)
	root.shows(root.page(200, "GET", "/pool"), "Add provider", "Unmet demand", "Plan capacity", "not measured")
	ann.shows(ann.page(200, "GET", "/pool"), "!Add provider", "!Unmet demand", "!What if")
	ann.page(403, "GET", "/pool/providers/new")
	ann.page(403, "POST", "/pool/providers", "gpu_code", r.code())
	w.problem(w.want(403, w.member, "POST", "/pool/authorizations", `{"gpu_code":"`+r.code()+`"}`))
	w.problem(w.want(403, w.member, "GET", "/pool/authorizations", ""))

	root.shows(root.page(200, "GET", "/pool/providers/new"), "weir agent", `name="owner_id"`)
	root.shows(root.page(422, "POST", "/pool/providers", "gpu_code", "nonsense", "name", "desk"), `id="f-gpu_code-error"`, `value="nonsense"`)
	page := root.page(200, "POST", "/pool/providers", "gpu_code", strings.ToLower(r.code()), "name", "desk", "owner_id", "")
	_, rest, found := strings.Cut(page, "weir agent --server http://example.com --code ")
	code, _, _ := strings.Cut(rest, "<")
	if !found {
		t.Fatalf("no command on\n%s", page)
	}
	open := w.get(w.admin, "/pool/authorizations").raw
	if !strings.Contains(open, r.code()) || strings.Contains(open, code) {
		t.Errorf("open authorizations: %s", open)
	}
	root.shows(root.page(200, "GET", "/pool"), "Unused authorization codes", r.code(), "!"+code)

	r.enrol(code)
	r.beat(providers.Sample{UUID: "GPU-desk-0", Utilisation: 80, MemoryUsedMiB: 1024, Temperature: 60, PowerMW: 300_000, Processes: []providers.Process{{PID: 7, Name: "train.py", MemoryMiB: 1000}}})
	root.shows(root.page(200, "GET", "/pool"), ">desk<", "80%", "!Unused authorization codes")
	got := w.provider(w.member, r.id)
	if got["name"] != "desk" || got["agent"] != true || got["may_manage"] != false || got["agent_since"] == nil || len(got["devices"].([]any)) != 2 {
		t.Errorf("provider: %v", got)
	}
	if list := w.get(w.member, "/pool/providers"); len(list.body["items"].([]any)) != 2 {
		t.Errorf("providers: %s", list.raw)
	}
	if all := w.get(w.member, "/pool"); all.body["computing"] != 80.0 || all.body["unmet"] != nil {
		t.Errorf("pool: %s", all.raw)
	}
}

// What a provider's owner sets holds on the page and in the API alike.
func TestProviderTerms(t *testing.T) {
	w := newWorld(t)
	root, bob := w.visitor("ada@example.org", true), w.visitor("bob@example.org", false)
	r := w.enrolled("desk", 2)
	at := path("pool", "providers", r.id)
	bob.shows(bob.page(200, "GET", at), "Terms", "always", "!Save terms", "!Drain")
	bob.page(403, "POST", at, "name", "mine")
	device := fmt.Sprint(int64(w.provider(w.admin, r.id)["devices"].([]any)[0].(map[string]any)["id"].(float64)))
	form := []string{"name", "desk", "cores", "50", "devices." + device, "1", "projects." + id(w.project), "1", "grace_minutes", "30", "time_zone", "Europe/Berlin",
		"hours[2].days.1", "1", "hours[2].days.5", "1", "hours[2].from", "18:00", "hours[2].to", "08:00"}
	root.page(303, "POST", at, form...)
	want := fmt.Sprintf(`"terms":{"cores":50,"devices":[%s],"projects":[%d],"hours":[{"days":[1,5],"from":"18:00","to":"08:00"}],"time_zone":"Europe/Berlin","grace_minutes":30}`, device, w.project)
	for who, token := range map[string]string{"an administrator": w.admin, "a member of the project": w.member} {
		if got := w.get(token, at); !strings.Contains(got.raw, want) {
			t.Errorf("%s reads %s, want %s", who, got.raw, want)
		}
	}
	if got := w.get(w.stranger, at); strings.Contains(got.raw, `"projects":`) || got.body["chosen_projects"] != true {
		t.Errorf("a stranger reads the terms as %s", got.raw)
	}
	kim := w.visitor("kim@example.org", false)
	guest := w.create(w.admin, path("projects", w.project, "roles"), `{"name":"guest","permission":"member","limit":`+slice+`}`)
	w.create(w.admin, path("projects", w.project, "members"), `{"email":"kim@example.org","role_id":`+id(guest)+`}`)
	kim.shows(kim.page(200, "GET", at), "selected projects, including yours: vision")
	root.shows(root.page(200, "GET", at), `name="hours[0].from" type="time"`, `value="18:00"`, `name="hours[3].to"`, "!hours[4]")
	bob.shows(bob.page(200, "GET", at), "Mon, Fri 18:00–08:00 (Europe/Berlin)", "selected projects, none of yours", "!№", "!vision")

	bad := root.page(422, "POST", at, "name", "", "cores", "many", "hours[2].from", "25:00")
	root.shows(bad, `id="f-cores-error"`, `value="25:00"`)
	bad = root.page(422, "POST", at, "name", "desk", "hours[2].from", "25:00", "time_zone", "Nowhere")
	root.shows(bad, `id="f-hours[0]-from-error"`, `id="f-hours[0]-days-error"`, `id="f-time_zone-error"`)
	root.page(409, "POST", at, "name", "desk", "version", "1")
	root.page(404, "GET", "/pool/providers/99")
	w.problem(w.want(403, w.member, "PUT", at, `{"name":"x","terms":{}}`))

	root.page(303, "POST", "/pool/providers/1", "name", "here", "owner_id", "")
	if here := w.provider(w.admin, 1); here["owner_id"] != nil {
		t.Errorf("the portal's own machine has got an owner: %v", here)
	}
	root.shows(root.page(422, "POST", "/pool/providers/1", "name", "here", "owner_id", "who@example.org"), `id="f-owner_id-error"`, "no account has this email address")
	root.shows(root.page(422, "POST", "/pool/providers/1", "name", "here", "other_projects", "all of them"), `id="f-other_projects-error"`)
	root.page(303, "POST", "/pool/providers/1", "name", "here", "owner_id", "BOB@example.org", "other_projects", id(w.project)+", "+id(w.project))
	root.shows(root.page(200, "GET", "/pool/providers/1"), `value="bob@example.org"`)
	if here := w.provider(w.admin, 1); fmt.Sprint(here["terms"].(map[string]any)["projects"]) != "["+id(w.project)+"]" {
		t.Errorf("lent to the projects that were named: %v", here["terms"])
	}

	owner := int64(w.get(w.stranger, "/me").body["id"].(float64))
	w.want(200, w.admin, "PUT", at, fmt.Sprintf(`{"name":"desk","owner_id":%d,"terms":{}}`, owner))
	if mine := w.provider(w.stranger, r.id); mine["may_manage"] != true || mine["owner"] == "" {
		t.Errorf("its owner: %v", mine)
	}
	w.want(200, w.stranger, "PUT", at, `{"name":"desk of mine","terms":{"cores":10}}`)
	w.problem(w.want(403, w.stranger, "PUT", at, fmt.Sprintf(`{"name":"desk","owner_id":%d,"terms":{}}`, owner+1)))
	w.problem(w.want(403, w.stranger, "POST", at+"/revoke", ""))
}

// Draining, recalling, removing: by page and by program.
func TestProviderComesAndGoes(t *testing.T) {
	w := newWorld(t)
	root, bob := w.visitor("ada@example.org", true), w.visitor("bob@example.org", false)
	r := w.enrolled("desk", 1)
	at := path("pool", "providers", r.id)
	state := func(want string) {
		t.Helper()
		if got := w.provider(w.member, r.id)["state"]; got != want {
			t.Errorf("the provider is %v, want %s", got, want)
		}
	}
	for _, step := range []struct{ do, want string }{{"drain", "draining"}, {"resume", "online"}} {
		bob.page(403, "POST", at+"/"+step.do)
		root.page(409, "POST", at+"/"+step.do, "version", "999")
		root.page(303, "POST", at+"/"+step.do)
		state(step.want)
		w.want(200, w.admin, "POST", at+"/resume", "")
		if a := w.want(200, w.admin, "POST", at+"/"+step.do, ""); a.body["state"] != step.want || a.header.Get("ETag") == "" {
			t.Errorf("%s: %s", step.do, a.raw)
		}
		w.want(412, w.admin, "POST", at+"/"+step.do, "", "If-Match", `"1"`)
	}
	root.shows(root.page(422, "POST", at+"/recall", "recall.grace_minutes", "99999", "recall.reason", "mine"), `id="f-recall-grace_minutes-error"`, `value="mine"`)
	root.page(303, "POST", at+"/recall", "recall.grace_minutes", "90", "recall.reason", "exam week")
	state("recalled")
	if got := w.provider(w.member, r.id); got["recall_reason"] != "exam week" || got["recall_at"] == nil {
		t.Errorf("recalled: %v", got)
	}
	bob.shows(bob.page(200, "GET", "/pool"), "Shares here end at")
	w.want(200, w.admin, "POST", at+"/resume", "")
	w.want(200, w.admin, "POST", at+"/recall", `{"grace_minutes":0}`)

	root.shows(root.page(409, "POST", at+"/accept"), "has no GPUs waiting for authorization")
	r.devices = append(r.devices, r.devices[0])
	r.devices[1].UUID, r.devices[1].Index = "GPU-desk-1", 1
	r.beat()
	state("pending")
	root.shows(root.page(200, "GET", at), "Accept changed GPUs", r.code())
	bob.shows(bob.page(200, "GET", at), "!Accept changed GPUs", "!"+r.code(), "!192.0.2.7", "pending")
	if got := w.get(w.member, at).raw + w.get(w.member, "/pool").raw + w.get(w.member, "/pool/providers").raw; strings.Contains(got, r.code()) ||
		strings.Contains(got, "192.0.2.7") || !strings.Contains(w.get(w.admin, at).raw, "192.0.2.7") {
		t.Errorf("a member reads %s", got)
	}
	w.want(200, w.admin, "POST", at+"/resume", "")
	root.page(303, "POST", at+"/accept")
	state("online")

	bob.page(403, "GET", at+"/revoke")
	root.shows(root.page(200, "GET", at+"/revoke"), "Revoke the agent of desk?")
	root.page(303, "POST", at+"/revoke")
	state("lost")
	root.page(409, "POST", at+"/revoke")
	w.want(409, w.admin, "POST", at+"/revoke", "")
	w.want(409, w.admin, "POST", at+"/accept", "")
	bob.page(403, "GET", at+"/remove")
	root.shows(root.page(200, "GET", at+"/remove"), "Remove desk from the pool?")
	w.problem(w.want(403, w.member, "DELETE", at, ""))
	w.problem(w.want(412, w.admin, "DELETE", at, "", "If-Match", `"1"`))
	w.want(204, w.admin, "DELETE", at, "")
	w.want(404, w.admin, "DELETE", path("pool", "providers", int64(99)), "")
	if list := w.get(w.member, "/pool"); strings.Contains(list.raw, `"name":"desk"`) {
		t.Errorf("removed, it is still there: %s", list.raw)
	}
}

func TestProviderRemovedByPage(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	r := w.enrolled("desk", 1)
	root.page(303, "POST", path("pool", "providers", r.id, "remove"))
	root.shows(root.page(200, "GET", "/pool"), "desk was removed from the pool.", "!>desk<")
}

// A recall reaches who holds a share; nobody else learns who that is.
func TestRecallNotifiesUsers(t *testing.T) {
	w := newWorld(t)
	w.want(200, w.admin, "POST", "/pool/providers/1/drain", "") // the portal's own machine
	kim, eve := w.visitor("kim@example.org", false), w.visitor("zoe@example.org", false)
	at := "/projects/" + id(w.project)
	guest := w.create(w.admin, at+"/roles", `{"name":"guest","permission":"member","limit":`+slice+`}`)
	w.create(w.admin, at+"/members", `{"email":"kim@example.org","role_id":`+id(guest)+`}`)
	r, token := w.enrolled("desk", 1), w.token("kim@example.org")
	n := id(w.create(token, "/workspaces", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10,"memory_mib":1024}}`))
	at = path("pool", "providers", r.id)
	w.want(200, w.admin, "POST", at+"/recall", `{"grace_minutes":60,"reason":"exam week"}`)
	kim.shows(kim.page(200, "GET", "/workspaces/"+n), "The share of GPU 0 on desk ends at", "exam week")
	kim.shows(kim.page(200, "GET", "/"), "The share of GPU 0 on desk ends at")
	share := w.get(w.stranger, "/pool/devices/3")
	if !strings.Contains(share.raw, `"ends_at"`) || strings.Contains(share.raw, "vision") || strings.Contains(share.raw, "kim@") {
		t.Errorf("a stranger reads %s", share.raw)
	}
	eve.shows(eve.page(200, "GET", at), "1 in use; members: 1", "another project", "!vision", "!kim@")
	w.want(200, w.admin, "POST", at+"/revoke", "")
	kim.shows(kim.page(200, "GET", "/workspaces/"+n), "Provider desk is lost.")
	w.problem(w.want(409, w.admin, "DELETE", at, ""))
	if got := w.get(token, "/workspaces/"+n); !strings.Contains(got.raw, `"provider_state":"lost"`) || !strings.Contains(got.raw, "exam week") {
		t.Errorf("the workspace: %s", got.raw)
	}
}

// What was measured is drawn, listed and told.
func TestDeviceMeasured(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.store.Clock = func() time.Time { return now }
	root := w.visitor("ada@example.org", true)
	r := w.enrolled("desk", 1)
	at := path("pool", "devices", int64(3))
	root.shows(root.page(200, "GET", at), "No metrics in this time range.", "No metrics yet.")
	for i := range int64(10) {
		r.beat(providers.Sample{UUID: "GPU-desk-0", Utilisation: 10 * i, MemoryUsedMiB: 2048, Temperature: 50 + i, PowerMW: 200_000,
			Processes: []providers.Process{{PID: 7, Name: "train.py", MemoryMiB: 1000}}})
		now = now.Add(20 * time.Second)
	}
	page := root.page(200, "GET", at)
	root.shows(page, "90%", "train.py", "59 °C", `class="line-mean" d="M`, "node 1", "on; 2 uncorrected errors")
	for _, span := range []string{"hour", "day", "week", "month", "months"} {
		root.shows(root.page(200, "GET", at+"?span="+span), `aria-current="true"`, "Utilization: maximum 90%.")
		a := w.get(w.member, at+"/telemetry?span="+span)
		buckets := a.body["buckets"].([]any)
		last := buckets[len(buckets)-1].(map[string]any)
		if a.body["span"] != span || last["max"].(map[string]any)["utilization"] != 90.0 || last["samples"] == 0.0 {
			t.Errorf("telemetry of the %s: %s", span, a.raw)
		}
	}
	if n := len(w.get(w.member, at+"/telemetry").body["buckets"].([]any)); n != 10 {
		t.Errorf("an hour by 5 seconds has %d buckets, want 10", n)
	}
	w.problem(w.want(422, w.member, "GET", at+"/telemetry?span=year", ""))
	w.problem(w.want(404, w.member, "GET", "/pool/devices/99/telemetry", ""))
	root.page(404, "GET", "/pool/devices/99")
	m := w.get(w.admin, at).body["measured"].(map[string]any)
	if m["utilization"] != 90.0 || m["processes"].([]any)[0].(map[string]any)["name"] != "train.py" {
		t.Errorf("measured: %v", m)
	}
	eve := w.visitor("bob@example.org", false)
	eve.shows(eve.page(200, "GET", at), "90%", "!train.py")
	for _, path := range []string{at, "/pool", "/pool/providers"} {
		if got := w.get(w.stranger, path).raw; !strings.Contains(got, `"utilization":90`) || strings.Contains(got, "train.py") {
			t.Errorf("%s tells a stranger %s", path, got)
		}
	}
}

// How a GPU is shared can be set by page and by program, and it says when
// that is in effect.
func TestDeviceSharing(t *testing.T) {
	w := newWorld(t)
	root, bob := w.visitor("ada@example.org", true), w.visitor("bob@example.org", false)
	r := w.enrolled("desk", 1)
	at := path("pool", "devices", int64(3))
	bob.shows(bob.page(200, "GET", at), "!MIG layout", "Shared between projects")
	bob.page(403, "POST", at, "sharing", "mps")
	root.shows(root.page(200, "GET", at), "1g.10gb, 3g.40gb", `value="time-slicing" checked`)
	root.shows(root.page(422, "POST", at, "sharing", "mig", "layout", "9g.90gb"), `id="f-layout-error"`, "9g.90gb")
	root.page(422, "POST", at, "sharing", "alone")
	root.page(303, "POST", at, "sharing", "mig", "layout", "3g.40gb\n3g.40gb")
	d := w.get(w.member, at).body
	if d["sharing"] != "mig" || d["changing"] != true || len(d["layout"].([]any)) != 2 {
		t.Errorf("device: %v", d)
	}
	root.shows(root.page(200, "GET", "/pool"), "changing · MIG")
	whole := r.devices[0]
	whole.Sharing = "mig"
	r.devices = []providers.DeviceReport{whole}
	for i := range 2 {
		part := r.devices[0]
		part.UUID, part.Parent, part.Profile, part.Cores, part.MemoryMiB, part.MIGProfiles = fmt.Sprintf("MIG-%d", i), whole.UUID, "3g.40gb", 42, 40960, nil
		r.devices = append(r.devices, part)
	}
	r.beat()
	root.shows(root.page(200, "GET", "/pool"), "MIG instances: 2", "MIG 3g.40gb", "42 free", "!being changed")
	root.shows(root.page(200, "GET", path("pool", "devices", int64(4))), "Parent GPU", "MIG 3g.40gb")
	if all := w.get(w.member, "/pool"); all.body["totals"].(map[string]any)["gpus"] != 3.0 {
		t.Errorf("a GPU in two instances counts twice: %s", all.raw)
	}
}

// Everybody may follow what is measured, and nobody what is not there.
func TestMayFollowTelemetry(t *testing.T) {
	w := newWorld(t)
	kim := must(w.app.Accounts.ActorByToken(w.Context(), w.stranger))(t)
	for topic, want := range map[string]bool{"telemetry:1": true, "telemetry:": false, "telemetry:x": false, "telemetry": false} {
		if got := w.app.Accounts.CheckTopics(w.Context(), kim, []string{topic}) == nil; got != want {
			t.Errorf("may follow %q: %t", topic, got)
		}
	}
}

// The past replayed, by page and by program.
func TestWhatIf(t *testing.T) {
	w := newWorld(t)
	root, bob := w.visitor("ada@example.org", true), w.visitor("bob@example.org", false)
	bob.page(403, "GET", "/pool/planning")
	w.problem(w.want(403, w.member, "POST", "/pool/planning", `{"add":"h100:8"}`))
	root.shows(root.page(200, "GET", "/pool/planning"), "Machines to add", "!Current")
	root.shows(root.page(200, "GET", "/pool/planning?add=h100:8"), "No requests in the last 30 days to replay.")
	w.launch(w.member, "")
	root.shows(root.page(422, "GET", "/pool/planning?add=h100"), `id="f-add-error"`, "h100&#34; must be a model and its number of GPUs")
	page := root.page(200, "GET", "/pool/planning?add=h100:8x2&days=7")
	root.shows(page, "Requests in the last 7 days: 1", "Current", "With h100:8x2", "<svg")
	root.shows(root.page(422, "GET", "/pool/planning?add=toaster:3&days=9999"), `id="f-add-error"`, `id="f-days-error"`)
	a := w.want(200, w.admin, "POST", "/pool/planning", `{"add":"h100:8x2","days":7}`)
	now, then := a.body["now"].(map[string]any), a.body["then"].(map[string]any)
	if a.body["requests"] != 1.0 || now["gpus"] != 2.0 || then["gpus"] != 18.0 || then["placed"] != 1.0 {
		t.Errorf("what if: %s", a.raw)
	}
}

// Who waits is told when it may start and why not before, and administrators
// see what is not met.
func TestWaiting(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	big := `{"project_id":` + id(w.project) + `,"request":{"gpus":1,"cores":100},"when_insufficient":"wait"}`
	w.want(200, w.admin, "PUT", "/projects/"+id(w.project), `{"name":"vision","quota":`+plenty+`,"priority":80}`)
	w.want(200, w.admin, "PUT", "/pool/providers/1", `{"name":"here","terms":{"cores":50}}`)
	w.problem(w.send(w.member, "POST", "/workspaces", big))
	w.want(200, w.admin, "PUT", "/pool/providers/1", `{"name":"here","terms":{}}`)
	for _, device := range []string{"1", "2"} {
		w.want(200, w.admin, "PUT", "/pool/devices/"+device, `{"sharing":"exclusive","mixed":false}`)
	}
	rival := w.create(w.admin, "/projects", `{"name":"rival","quota":`+plenty+beyond+`}`)
	role := w.create(w.admin, "/projects/"+id(rival)+"/roles", `{"name":"all","permission":"member","limit":`+plenty+`}`)
	w.create(w.admin, "/projects/"+id(rival)+"/members", `{"email":"eve@example.org","role_id":`+id(role)+`}`)
	w.want(201, w.stranger, "POST", "/workspaces", `{"project_id":`+id(rival)+`,"request":{"gpus":2,"cores":60}}`)
	preview := w.want(200, w.member, "POST", "/launch/preview", big)
	if f := preview.body["offer"].(map[string]any)["estimate"].(map[string]any); f["outcome"] != "unknown" || f["text"] == "" {
		t.Errorf("estimate: %s", preview.raw)
	}
	w.want(201, w.member, "POST", "/workspaces", big)
	all := w.get(w.admin, "/pool")
	first := all.body["waiting"].([]any)[0].(map[string]any)
	if first["position"] != 1.0 || first["behind"] != nil || first["estimate"].(map[string]any)["outcome"] != "unknown" {
		t.Errorf("waiting: %s", all.raw)
	}
	unmet := all.body["unmet"].([]any)[0].(map[string]any)
	if unmet["waiting"] != 1.0 || unmet["cores"] != 100.0 || unmet["refused"] != 1.0 {
		t.Errorf("unmet: %s", all.raw)
	}
	root.shows(root.page(200, "GET", "/pool"), "unknown (not enough usage history)", "Refused (24\u00a0h)")
	if p := w.get(w.member, "/projects/"+id(w.project)); p.body["priority"] != 80.0 {
		t.Errorf("priority: %s", p.raw)
	}
}

// However many accounts and projects there are, each can be chosen.
func TestEveryAccountAndProjectCanBeChosen(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		for i := range store.PageSize + 5 {
			name := fmt.Sprintf("extra-%03d", i)
			if err := q.CreateUser(&models.User{Email: name + "@example.org", Name: name, Version: 1, CreatedAt: q.Now()}); err != nil {
				return err
			}
			if err := q.CreateProject(&models.Project{Name: "of " + name, StartsAt: q.Now(), Version: 1, CreatedAt: q.Now()}); err != nil {
				return err
			}
		}
		return nil
	})
	last := fmt.Sprintf("extra-%03d", store.PageSize+4)
	projects, err := w.store.Read(t.Context()).ListProjects(store.AllProjects, store.ProjectFilter{Search: last}, store.Page{})
	if err != nil || len(projects) != 1 {
		t.Fatal(len(projects), err)
	}
	form := root.page(200, "GET", "/pool/providers/1")
	root.shows(form, "of extra-000", "!of "+last, `name="other_projects"`)
	root.page(303, "POST", "/pool/providers/1", "name", "here", "owner_id", last+"@example.org", "other_projects", id(projects[0].ID))
	root.shows(root.page(200, "GET", "/pool/providers/1"), last+"@example.org", "of "+last)
	root.page(422, "POST", "/pool/providers/1", "name", "here", "owner_id", "nobody@example.org")
}
