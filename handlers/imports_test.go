package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"weir/handlers/sheet"
	"weir/models"
)

// upload posts a form with a file, as a browser does.
func (v visitor) upload(status int, to, file string, fields ...string) string {
	v.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			v.Fatal(err)
		}
	}
	part, err := w.CreateFormFile("file", "members.csv")
	if err == nil {
		_, err = part.Write([]byte(file))
	}
	if err != nil || w.Close() != nil {
		v.Fatal(err)
	}
	r := httptest.NewRequestWithContext(v.Context(), "POST", to, &body)
	r.Header.Set("Content-Type", w.FormDataContentType())
	r.Header.Set("Cookie", v.cookie)
	rec := httptest.NewRecorder()
	v.app.ServeHTTP(rec, r)
	if rec.Code != status {
		v.Fatalf("%s: %d, want %d\n%s\nlog: %s", to, rec.Code, status, rec.Body, v.log)
	}
	return rec.Body.String()
}

var planField = regexp.MustCompile(`name="plan" value="([0-9a-f]+)"`)

// plan is what a dry run's page would send on.
func (v visitor) plan(page string) string {
	v.Helper()
	m := planField.FindStringSubmatch(page)
	if m == nil {
		v.Fatalf("no plan in\n%s", page)
	}
	return m[1]
}

func table(csv string, dry bool, plan string) string {
	b, _ := json.Marshal(map[string]any{"csv": csv, "dry_run": dry, "plan": plan})
	return string(b)
}

// The same table by the page, with a file and typed, and by the API.
func TestImportMembers(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	at := path("projects", w.project)
	w.create(w.admin, at+"/roles", `{"name":"guest","permission":"member","limit":`+slice+`}`)
	root.shows(root.page(200, "GET", at), at+"/members/import", "/api/v1"+at+"/members.csv")
	root.shows(root.page(200, "GET", at+"/members/import"), `type="file"`, "email,name,department,role,joined,until", "!Outcome")

	file := "\ufeffemail,role,joined\r\neve@example.org,guest,2024-02-29\r\nann@example.org,guest,\r\n"
	page := root.upload(200, at+"/members/import", file)
	root.shows(page, "1 to add, 1 to update, 0 unchanged, 0 refused", "Import 2 rows", "role: engineer → guest", "joined: 2024-02-29")
	if list := w.get(w.admin, at+"/members"); strings.Contains(list.raw, "eve@") {
		t.Errorf("a dry run changed: %s", list.raw)
	}
	dry := w.want(200, w.manager, "POST", at+"/members/import", table(file, true, ""))
	if dry.body["added"] != 1.0 || dry.body["changed"] != 1.0 || dry.body["done"] != false || dry.body["plan"] != root.plan(page) {
		t.Errorf("by the API: %s", dry.raw)
	}
	// The table comes back as browsers send a text area.
	root.page(303, "POST", at+"/members/import", "csv", strings.TrimPrefix(file, "\ufeff"), "plan", root.plan(page), "confirm", "1")
	if list := w.get(w.admin, at+"/members"); !strings.Contains(list.raw, `"joined_at":"2024-02-29T00:00:00Z"`) {
		t.Errorf("imported: %s", list.raw)
	}
	root.shows(root.page(409, "POST", at+"/members/import", "csv", file, "plan", root.plan(page), "confirm", "1"), "changed since the dry run", "2 unchanged")
	w.problem(w.want(409, w.manager, "POST", at+"/members/import", table(file, false, root.plan(page))))
	again := w.want(200, w.manager, "POST", at+"/members/import", table(file, true, ""))
	done := w.want(200, w.manager, "POST", at+"/members/import", table(file, false, again.body["plan"].(string)))
	if done.body["done"] != true || done.body["unchanged"] != 2.0 {
		t.Errorf("imported again: %s", done.raw)
	}
	// What is downloaded changes nothing.
	csv := w.want(200, w.manager, "GET", at+"/members.csv", "")
	if kind := csv.header.Get("Content-Type"); kind != "text/csv; charset=utf-8" {
		t.Error(kind)
	}
	all := w.want(200, w.manager, "POST", at+"/members/import", table(csv.raw, true, ""))
	if all.body["unchanged"] != 3.0 || all.body["changed"] != 0.0 {
		t.Errorf("%s of %s", all.raw, csv.raw)
	}
}

func TestWrongImports(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	at := path("projects", w.project, "members", "import")
	refused := root.upload(200, at, "email,role\neve@example.org,chief\nann@example.org,lead\n")
	root.shows(refused, "The import is blocked until no row is refused", "!Import 1 row", "role: is not a role of this project")
	root.shows(root.page(422, "POST", at, "csv", "email,role\neve@example.org,chief", "plan", root.plan(root.page(200, "POST", at, "csv", "email,role\neve@example.org,chief")),
		"confirm", "1"), "line 2.role", "eve@example.org,chief")
	for csv, says := range map[string]string{
		"":                     "must not be empty",
		"email|role\nx|y":      "separated by commas",
		"email,role\na@b,\xff": "line 2 is not valid UTF-8",
		"email,role\na@b,\"x":  "line 2 has a misplaced quotation mark",
		"email,role\na@b":      "line 2 does not have the same number of cells",
		"email,role\n" + strings.Repeat("a@b.c,x\n", 2001):     "at most 2000 rows",
		"email,role\n" + strings.Repeat("x", sheet.MaxBytes+1): "at most 1\u00a0MiB",
	} {
		root.shows(root.upload(422, at, csv, "csv", csv), says, `id="f-csv-error"`)
		if strings.Contains(csv, "\xff") || len(csv) > sheet.MaxBytes {
			continue // JSON mends the one, and its schema refuses the other
		}
		if fields := w.problem(w.want(422, w.admin, "POST", at, table(csv, true, ""))); !strings.Contains(fields["csv"], says) {
			t.Errorf("%.40q: %v", csv, fields)
		}
	}
	w.problem(w.want(422, w.admin, "POST", at, table(strings.Repeat("x", sheet.MaxBytes+1), true, "")))
	w.problem(w.want(422, w.admin, "POST", at, table("email,role\neve@example.org,lead", false, "")))
	big := strings.Repeat("x", 5_000_000)
	root.upload(413, at, big)
	w.problem(w.want(413, w.admin, "POST", at, table(big, true, "")))
	w.problem(w.want(413, w.admin, "POST", "/departments", `{"name":"`+strings.Repeat("x", 2_000_000)+`"}`))
}

// Nearly as much as is allowed: 2000 rows, 1 MiB, in Chinese.
func TestImportOfALargeTable(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	var csv strings.Builder
	csv.WriteString("email,name\n")
	for i := range 2000 {
		fmt.Fprintf(&csv, "user%d@example.org,%s\n", i, strings.Repeat("漢", 90))
	}
	page := root.upload(200, "/people/import", csv.String())
	root.shows(page, "Import 2000 rows")
	root.upload(303, "/people/import", csv.String(), "plan", root.plan(page), "confirm", "1")
	if list := w.get(w.admin, "/users?q=user1999"); !strings.Contains(list.raw, "漢") {
		t.Errorf("%s", list.raw)
	}
}

func TestImportPeople(t *testing.T) {
	w := newWorld(t)
	root, bob := w.visitor("ada@example.org", true), w.visitor("bob@example.org", false)
	w.create(w.admin, "/departments", `{"name":"=Vision"}`)
	root.shows(root.page(200, "GET", "/people"), "/people/import", "/api/v1/users.csv")
	file := "email,name,department,admin\nnew@example.org,'=1+1,'=Vision,no\nann@example.org,@nn,,no\n"
	page := root.upload(200, "/people/import", file)
	root.shows(page, "Import 2 rows", "name: =1+1", "department: =Vision")
	root.upload(303, "/people/import", file, "plan", root.plan(page), "confirm", "1")
	csv := w.want(200, w.admin, "GET", "/users.csv", "").raw
	if !strings.Contains(csv, "new@example.org,'=1+1,'=Vision,no,no") || !strings.Contains(csv, "ann@example.org,'@nn,,no,no") {
		t.Errorf("%s", csv)
	}
	all := w.want(200, w.admin, "POST", "/users/import", table(csv, true, ""))
	if all.body["changed"] != 0.0 || all.body["added"] != 0.0 || all.body["refused"] != 0.0 || all.body["unchanged"] != float64(strings.Count(csv, "\n")-1) {
		t.Errorf("%s of %s", all.raw, csv)
	}
	bob.page(403, "GET", "/people/import")
	bob.upload(403, "/people/import", file)
	w.problem(w.want(403, w.manager, "GET", "/users.csv", ""))
	w.problem(w.want(403, w.manager, "POST", "/users/import", table(file, true, "")))
}

func TestForeignImports(t *testing.T) {
	w := newWorld(t)
	bob := w.visitor("bob@example.org", false)
	ann := visitor{w, w.signInAs("ann@example.org")}
	for _, project := range []int64{w.project, 99} {
		at := path("projects", project)
		bob.page(404, "GET", at+"/members/import")
		bob.upload(404, at+"/members/import", "nonsense")
		for method, p := range map[string]string{"GET": "/members.csv", "POST": "/members/import"} {
			body := ""
			if method == "POST" {
				body = table("nonsense", true, "")
			}
			w.problem(w.want(404, w.stranger, method, at+p, body))
		}
		w.problem(w.want(404, w.stranger, "POST", at+"/preview", `{"quota":{"gpu_cores":1}}`))
	}
	at := path("projects", w.project)
	ann.page(403, "GET", at+"/members/import")
	w.problem(w.want(403, w.member, "POST", at+"/members/import", table("email,role\na@b,x", true, "")))
	w.want(200, w.member, "GET", at+"/members.csv", "")
	w.problem(w.want(403, w.member, "POST", at+"/preview", `{"member":{"role_id":`+id(w.role)+`}}`))
}

// signInAs gives an account a password and signs in with it.
func (w *world) signInAs(email string) string {
	w.Helper()
	user := w.get(w.admin, "/users?q="+email).body["items"].([]any)[0].(map[string]any)
	w.want(204, w.admin, "PUT", path("users", int64(user["id"].(float64)), "password"), `{"password":"correct horse"}`)
	cookie := w.signIn(email, "correct horse")
	w.member = w.token(email) // a new password ended it
	return cookie
}

func TestPreviews(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	at := path("projects", w.project)
	role, member := at+"/roles/"+id(w.role), at+"/members/"+id(w.place)
	limit := func(cores string) []string {
		return []string{"preview", "1", "name", "", "permission", "member", "limit.gpu_cores", cores, "limit.cpu_milli", "1"}
	}
	preview := func(body string) map[string]any {
		t.Helper()
		return w.want(200, w.manager, "POST", at+"/preview", body).body
	}
	over := func(v map[string]any) (list []string) {
		for _, r := range v["resources"].([]any) {
			if r := r.(map[string]any); r["over"] == true {
				list = append(list, fmt.Sprint(r["resource"], r["remaining"]))
			}
		}
		return list
	}
	// The world's quota is 200 cores; an engineer has 100, the lead 10.
	root.shows(root.page(200, "GET", role+"/edit"), `id="preview"`, `hx-post="`+role+`"`, "Allocated after", ">within quota<", "1 member has this role; the limit is allocated to that member.", "is enough for 0 more members")
	root.shows(root.page(200, "POST", role, limit("150")...), ">within quota<", ">160<", `value="150"`)
	if v := preview(`{"role":{"role_id":` + id(w.role) + `,"limit":{"gpu_cores":150}}}`); v["accepted"] != true || v["additional_members"] != 0.0 {
		t.Errorf("%v", v)
	}
	root.shows(root.page(200, "POST", role, limit("195")...), "would be refused", "exceeded by 5", "90 of the project&#39;s quota of 200 remaining")
	v := preview(`{"role":{"role_id":` + id(w.role) + `,"limit":{"gpu_cores":195` + noMore + `}}}`)
	if got := over(v); v["accepted"] != false || len(got) != 1 || got[0] != "gpu_cores-5" || v["errors"] == nil {
		t.Errorf("%v", v)
	}
	root.shows(root.page(200, "POST", role, limit("many")...), "would be refused", "must be a whole number")
	root.shows(root.page(200, "POST", at+"/roles", limit("201")...), "would be refused", "quota is 200", "not allowed")
	if got := over(preview(`{"role":{"limit":{"gpu_cores":201` + noMore + `}}}`)); len(got) != 1 {
		t.Errorf("%v", got)
	}
	root.shows(root.page(200, "GET", at+"/members/new"), `id="preview"`)
	root.shows(root.page(200, "POST", at+"/members", "preview", "1", "email", "eve@example.org", "role_id", id(w.role)), "would be refused", "exceeded by 10")
	root.shows(root.page(200, "POST", member, "preview", "1", "role_id", id(w.role)), ">within quota<", `name="joined_at"`)
	if v := preview(`{"member":{"member_id":` + id(w.place) + `,"role_id":` + id(w.role) + `}}`); v["accepted"] != true || v["members"] != 1.0 {
		t.Errorf("%v", v)
	}
	root.shows(root.page(200, "POST", at, "preview", "1", "name", "", "quota.gpu_cores", "100"), "would be refused", "exceeded by 10", "the quota cannot be lower")
	if v := preview(`{"quota":{"gpu_cores":100}}`); v["accepted"] != false {
		t.Errorf("%v", v)
	}
	for _, body := range []string{`{}`, `{"quota":{"gpu_cores":1},"role":{"limit":{}}}`, `{"quota":{"gpu_cores":-1}}`, `{"member":{"role_id":0}}`} {
		w.problem(w.want(422, w.manager, "POST", at+"/preview", body))
	}
	w.problem(w.want(404, w.manager, "POST", at+"/preview", `{"role":{"role_id":99,"limit":{}}}`))
	if p := w.get(w.admin, at); p.body["remaining"].(map[string]any)["gpu_cores"] != 90.0 {
		t.Errorf("a preview changed: %s", p.raw)
	}
}

// noMore follows GPU cores in JSON: none of the rest, rather than in proportion.
const noMore = `,"gpu_memory_mib":0,"cpu_milli":0,"memory_mib":0,"storage_mib":0`

// Who asks, and who decides, sees what would come of it.
func TestPreviewsOfRequests(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	ann := visitor{w, w.signInAs("ann@example.org")}
	ask := fmt.Sprintf("/requests/new?project_id=%d&kind=", w.project)
	ann.shows(ann.page(200, "GET", ask+models.RequestLimit), `id="preview"`, `hx-post="/requests"`)
	project := id(w.project)
	ann.shows(ann.page(200, "POST", "/requests", "preview", "1", "kind", "limit", "limit.project_id", project, "limit.role_id", id(w.role), "limit.limit.gpu_cores", "195", "limit.limit.cpu_milli", "4"),
		"cannot be approved now", "You can submit it.", "exceeded by 5", "!would be refused")
	ann.shows(ann.page(200, "POST", "/requests", "preview", "1", "kind", "role", "role.project_id", project, "role.permission", "member", "role.limit.gpu_cores", "20"), "!>within quota<", "!would be refused", "is enough for 4 more members")
	ann.shows(ann.page(200, "POST", "/requests", "preview", "1", "kind", "quota", "quota.project_id", project, "quota.quota.gpu_cores", "300", "quota.quota.storage_mib", "0"), "cannot be approved now")
	if list := w.get(w.member, "/requests").body["items"].([]any); len(list) != 0 {
		t.Errorf("a preview asked: %v", list)
	}
	n := w.create(w.member, "/requests", fmt.Sprintf(`{"reason":"more","limit":{"project_id":%d,"role_id":%d,"limit":{"gpu_cores":195`+noMore+`}}}`, w.project, w.role))
	root.shows(root.page(200, "GET", w.requestAt(n)), `id="preview"`, "exceeded by 5")
	root.shows(root.page(200, "POST", w.requestAt(n), "preview", "1", "limit.limit.gpu_cores", "190"), ">within quota<")
	if got := w.state(w.member, n); got != "pending" {
		t.Errorf("a preview decided: %s", got)
	}
}

// Who only decides requests sees beside the form what would come of it, of who
// asked and of nobody else.
func TestPreviewForWhoOnlyDecides(t *testing.T) {
	w := newWorld(t)
	at := path("projects", w.project)
	judge := w.visitor("judy@example.org", false)
	role := w.create(w.admin, at+"/roles", `{"name":"judge","permission":"custom","permissions":["request:decide"],"limit":{}}`)
	w.create(w.admin, at+"/members", `{"email":"judy@example.org","role_id":`+id(role)+`}`)
	w.visitor("ada@example.org", true).page(303, "POST", at+"/join-requests", "on", "1")
	n := w.create(w.stranger, "/requests", `{"reason":"to help","join":{"name":"vision"}}`)
	judge.shows(judge.page(200, "POST", w.requestAt(n), "preview", "1", "join.role_id", id(role), "email", "nobody@example.org"), `id="preview"`, ">within quota<")
	judge.shows(judge.page(200, "POST", w.requestAt(n), "preview", "1", "join.role_id", id(w.role)), "would be refused", "exceeded by 10")
}
