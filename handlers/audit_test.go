package handlers

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/authority"
	"weir/pool/providers"
)

func TestClientAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::1/128")}
	for _, c := range []struct {
		name, remote, header string
		trusted              []netip.Prefix
		want                 string
	}{
		{"nobody is trusted", "10.0.0.1:9", "192.0.2.1", nil, "10.0.0.1"},
		{"a loopback is not trusted by itself", "127.0.0.1:9", "192.0.2.1", proxies, "127.0.0.1"},
		{"a stranger", "203.0.113.5:9", "192.0.2.1", proxies, "203.0.113.5"},
		{"a proxy", "10.0.0.1:9", "192.0.2.1", proxies, "192.0.2.1"},
		{"a proxy that says nothing", "10.0.0.1:9", "", proxies, "10.0.0.1"},
		{"a proxy that says nonsense", "10.0.0.1:9", "nonsense", proxies, "10.0.0.1"},
		{"a client's own header before a proxy's", "10.0.0.1:9", "198.51.100.1, 192.0.2.1", proxies, "192.0.2.1"},
		{"proxies in a row", "[2001:db8::1]:9", "192.0.2.1, 10.9.9.9", proxies, "192.0.2.1"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.remote
		if c.header != "" {
			r.Header.Set("X-Forwarded-For", c.header)
		}
		if got := clientAddress(c.trusted)(r); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// entries are the newest n, as an administrator sees them.
func (w *world) entries(n int, query string) (list []map[string]any) {
	w.Helper()
	for _, item := range w.get(w.admin, fmt.Sprintf("/audit?limit=%d%s", n, query)).body["items"].([]any) {
		list = append(list, item.(map[string]any))
	}
	return list
}

// Every way to speak is in the audit, with the address that the server sees.
func TestAuditSaysByWhatAndFromWhere(t *testing.T) {
	w := newWorld(t)
	ada := w.visitor("ada@example.org", true)
	speaks := func(actor, via, address string) {
		t.Helper()
		e := w.entries(1, "")[0]
		if got, _ := e["address"].(string); e["actor"] != actor || e["via"] != via || got != address {
			t.Errorf("%v, want %s by %s from %q", e, actor, via, address)
		}
	}
	w.want(201, w.admin, "POST", "/projects", `{"name":"one","quota":`+some+beyond+`}`, "X-Forwarded-For", "198.51.100.1")
	speaks("root@example.org", "token test", "192.0.2.1")
	ada.page(303, "POST", "/projects", "name", "two", "confirm", "1", "reason", "a test", "quota.gpu_cores", "1", "quota.gpu_memory_mib", "1", "quota.cpu_milli", "1", "quota.memory_mib", "1", "quota.storage_mib", "1")
	speaks("ada@example.org", "session", "192.0.2.1")
	if _, _, err := w.app.Accounts.CreateTokenFor(t.Context(), policies.System("test"), "eve@example.org", policies.NewToken{Name: "y"}); err != nil {
		t.Fatal(err)
	}
	speaks("weir test", "system", "")
	ctx := policies.WithOrigin(t.Context(), policies.Origin{Via: policies.ViaCommand})
	if _, _, err := w.app.Accounts.CreateTokenFor(ctx, policies.System("admin"), "eve@example.org", policies.NewToken{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	speaks("weir admin", "command", "")
}

// What a machine's agent brings about says from where it came, too.
func TestAuditOfAnAgent(t *testing.T) {
	w := newWorld(t)
	devices := []providers.DeviceReport{{UUID: "GPU-x", Model: "NVIDIA H200", MemoryMiB: 143771}}
	digest := providers.MachineDigest("desk")
	a := w.want(201, w.admin, "POST", "/pool/authorizations", `{"gpu_code":"`+providers.GPUCodeOf(digest, devices)+`"}`)
	in := providers.Redemption{Code: a.body["code"].(string), CSR: csrOf(t, must(authority.NewKey())(t)), Name: "desk", Machine: digest, Devices: devices}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/redeem", bytes.NewReader(must(json.Marshal(in))(t)))
	rec := httptest.NewRecorder()
	NewAgents(w.app.Enrollment, slog.New(slog.DiscardHandler)).ServeHTTP(rec, r)
	e := w.entries(1, "&action=enrol")
	if rec.Code != 200 || len(e) != 1 || e[0]["via"] != "agent" || e[0]["address"] != "192.0.2.1" {
		t.Errorf("%d %s: %v", rec.Code, rec.Body, e)
	}
}

func TestAuditFiltersAndPages(t *testing.T) {
	w := newWorld(t)
	all := w.entries(200, "")
	for query, same := range map[string]func(e map[string]any) bool{
		"&actor=root@example.org":       func(e map[string]any) bool { return e["actor"] == "root@example.org" },
		"&action=create&object=project": func(e map[string]any) bool { return e["action"] == "create" && e["object"] == "project" },
		"&object_id=1&object=role":      func(e map[string]any) bool { return e["object_id"] == 1.0 && e["object"] == "role" },
		"&project_id=1":                 func(e map[string]any) bool { return e["project_id"] == 1.0 },
		"&project_name=vision":          func(e map[string]any) bool { return e["project_id"] == 1.0 },
		"&actor=ROOT@example.org":       func(e map[string]any) bool { return e["actor"] == "root@example.org" },
		"&from=2000-01-01T00:00:00Z":    func(map[string]any) bool { return true },
		"&until=2000-01-01T00:00:00Z":   func(map[string]any) bool { return false },
	} {
		n := 0
		for _, e := range all {
			if same(e) {
				n++
			}
		}
		got := w.entries(200, query)
		if len(got) != n || slices.ContainsFunc(got, func(e map[string]any) bool { return !same(e) }) {
			t.Errorf("%s: %d entries, want %d", query, len(got), n)
		}
	}
	seen, path := 0, "/audit?limit=4&actor=root@example.org"
	for cursor := ""; ; {
		page := w.get(w.admin, path+cursor)
		seen += len(page.body["items"].([]any))
		next, more := page.body["next_cursor"].(string)
		if !more {
			break
		}
		cursor = "&cursor=" + next
	}
	if want := len(w.entries(200, "&actor=root@example.org")); seen != want {
		t.Errorf("%d entries on all pages, want %d", seen, want)
	}
	w.problem(w.want(422, w.admin, "GET", "/audit?cursor=999999", ""))
	w.problem(w.want(422, w.admin, "GET", "/audit?from=yesterday", ""))
	w.problem(w.want(403, w.manager, "GET", "/audit.csv", ""))
}

// fill adds so many entries with a name that a spreadsheet would carry out.
func (w *world) fill(n int) {
	w.Helper()
	storetest.InTx(w, w.store, func(q *store.Queries) error {
		for i := range n {
			e := models.AuditEntry{At: q.Now(), Actor: "=cmd|' /C calc'!A0", Via: "session", Action: "fill", Object: "thing", ObjectID: int64(i + 1), After: `{"a":"b,c"}`}
			if err := q.PutAudit(e); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestAuditDownload(t *testing.T) {
	w := newWorld(t)
	const n = store.PageSize*2 + 7
	w.fill(n)
	got := w.want(200, w.admin, "GET", "/audit.csv?action=fill", "")
	if got.header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.Contains(got.header.Get("Content-Disposition"), "weir-audit.csv") {
		t.Errorf("headers %v", got.header)
	}
	rows := must(csv.NewReader(strings.NewReader(got.raw)).ReadAll())(t)
	if len(rows) != n+1 || !slices.Equal(rows[0], auditColumns) {
		t.Fatalf("%d rows after %v", len(rows)-1, rows[0])
	}
	column := func(name string) int { return slices.Index(auditColumns, name) }
	for i, row := range rows[1:] {
		if row[column("object_id")] != fmt.Sprint(n-i) || row[column("actor")] != "'=cmd|' /C calc'!A0" || row[column("after")] != `{"a":"b,c"}` || len(row[column("sha256")]) != 64 {
			t.Fatalf("row %d is %v", i, row)
		}
	}
}

// interrupted is a client's connection during which something happens.
type interrupted struct {
	*httptest.ResponseRecorder
	happen func()
}

func (i *interrupted) Write(b []byte) (int, error) {
	i.happen()
	i.happen = func() {}
	return i.ResponseRecorder.Write(b)
}

// A download ends when its reader may not read any more, and does not look
// complete.
func TestAuditDownloadEndsWithTheRight(t *testing.T) {
	w := newWorld(t)
	w.fill(store.PageSize * 3)
	ctx := context.WithoutCancel(t.Context())
	i := &interrupted{httptest.NewRecorder(), func() {
		ada := must(w.store.Read(ctx).UserByEmail("root@example.org"))(t)
		storetest.User(t, w.store, "other@example.org", true)
		if _, err := w.app.Accounts.UpdateUser(ctx, policies.System("test"), ada.ID, policies.UserChange{Name: "root", Disabled: true}); err != nil {
			t.Error(err)
		}
	}}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, apiPrefix+"/audit.csv", nil)
	r.Header.Set("Authorization", "Bearer "+w.admin)
	func() {
		defer func() {
			if got := recover(); got != http.ErrAbortHandler {
				t.Errorf("the connection was not cut: %v", got)
			}
		}()
		w.app.ServeHTTP(i, r)
	}()
	if n := strings.Count(i.Body.String(), "\n"); n == 0 || n > store.PageSize+1 {
		t.Errorf("%d lines were sent", n)
	}
}

// An actor's full name stands for the email address, if it is of one account: of all for those
// who may list these, of the members for a manager.
func TestAuditByName(t *testing.T) {
	w := newWorld(t)
	for _, email := range []string{"li@example.org", "kim@example.org", "kim2@example.org"} {
		w.create(w.admin, "/users", `{"email":"`+email+`","name":"`+map[bool]string{true: "Li Wei", false: "Kim"}[email == "li@example.org"]+`","admin":true,"password":"choose a long password"}`)
	}
	w.create(w.token("li@example.org"), "/departments", `{"name":"by li"}`)
	query := "&actor=li+wei&object=department"
	if list := w.entries(10, query); len(list) != 1 || list[0]["actor"] != "li@example.org" {
		t.Errorf("%v", list)
	}
	for query, field := range map[string]string{"actor=Kim": "actor", "project_name=sound": "project_name"} {
		if p := w.problem(w.want(422, w.admin, "GET", "/audit?"+query, "")); p[field] == "" {
			t.Errorf("%s: %v", query, p)
		}
	}
	w.create(w.admin, "/users", `{"email":"sly@example.org","name":"weir reconciler","password":"choose a long password"}`)
	w.want(200, w.token("sly@example.org"), "PUT", "/me", `{"name":"weir reconciler"}`)
	if list := w.entries(10, "&actor=weir+reconciler"); len(list) != 0 {
		t.Errorf("somebody who calls himself like a component: %v", list)
	}
	if list := w.want(200, w.manager, "GET", "/audit?project_name=vision"+query, "").body["items"].([]any); len(list) != 0 {
		t.Errorf("Li is no member: %v", list)
	}
	w.want(200, w.manager, "GET", "/audit?project_name=vision&actor=Kim", "") // nobody there
	w.want(422, w.stranger, "GET", "/audit?project_name=vision", "")
	ada := w.visitor("ada@example.org", true)
	ada.shows(ada.page(200, "GET", "/audit?actor=Li+Wei&object=department"), "department by li (1)", `value="Li Wei"`)
	ada.shows(ada.page(422, "GET", "/audit?project_name=sound"), `id="f-project_name-error"`)
}

func TestAuditPage(t *testing.T) {
	w := newWorld(t)
	ada := w.visitor("ada@example.org", true)
	ada.page(303, "POST", "/projects/1", "name", "vision 2", "version", "1", "quota.gpu_cores", "200", "quota.gpu_memory_mib", "280000",
		"quota.cpu_milli", "16", "quota.memory_mib", "65536", "quota.storage_mib", "1000000", "starts_at", time.Now().UTC().Format(time.DateOnly))
	page := ada.page(200, "GET", "/audit?object=project&action=update")
	ada.shows(page, `href="/projects/1"`, "ada@example.org", "<del>vision</del>", "<ins>vision 2</ins>", "192.0.2.1", "session",
		`href="/api/v1/audit.csv?action=update&amp;object=project"`, `<option value="update" selected>`, "!"+`<option value="create" selected>`)
	ada.shows(ada.page(200, "GET", "/audit?actor=nobody@example.org"), "No matching entries.", `value="nobody@example.org"`, "Clear filters")
	ada.shows(ada.page(200, "GET", "/audit?from=2000-01-01&until=2000-01-02"), "No matching entries.", "until=2000-01-03T00%3A00%3A00Z")
	ada.shows(ada.page(200, "GET", "/audit?object=unheard-of"), `<option value="unheard-of" selected>`)
	ada.shows(ada.page(422, "GET", "/audit?object_id=x&from=yesterday"), `id="f-object_id-error"`, `id="f-from-error"`, "!<table>")
	w.fill(pageSize)
	first := ada.page(200, "GET", "/audit?action=fill&actor=")
	ada.shows(first, "=cmd|", "!cursor=") // a full page, and nothing behind it
	today := ada.page(200, "GET", "/audit?from="+time.Now().UTC().Add(-24*time.Hour).Format(time.DateOnly))
	ada.shows(today, "cursor=")
	eve := w.visitor("mallory@example.org", false)
	eve.page(403, "GET", "/audit")
	eve.page(403, "GET", "/audit?object_id=x")
}
