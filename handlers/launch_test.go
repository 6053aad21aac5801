package handlers

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// A launch is answered as such even if it cannot be read any more, so that a client does
// not launch twice.
func TestALaunchIsAnsweredWithoutARead(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w.store.OnChange(func(topics []string) {
			if slices.ContainsFunc(topics, func(topic string) bool { return strings.HasPrefix(topic, "workspace:") }) {
				cancel() // after the commit
			}
		})
		r := httptest.NewRequestWithContext(ctx, "POST", apiPrefix+"/workspaces", strings.NewReader(`{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+w.member)
		rec := httptest.NewRecorder()
		w.app.ServeHTTP(rec, r)
		if rec.Code != 201 || ctx.Err() == nil || !strings.HasPrefix(rec.Header().Get("Location"), apiPrefix+"/workspaces/") ||
			!strings.Contains(rec.Body.String(), `"state":"starting"`) {
			t.Errorf("%d %v: %s", rec.Code, rec.Header(), rec.Body)
		}
	})
}

// A launch above the remaining limit is refused on its page, however much the pool has; the page
// offers to request more also if one amount alone is above the limit, and says what was wanted.
func TestLaunchPageAboveTheLimit(t *testing.T) {
	w := newWorld(t)
	ann := w.visitor("anna@example.org", false)
	w.want(204, w.manager, "DELETE", "/projects/"+id(w.project)+"/members/"+id(w.place), "")
	w.create(w.manager, "/projects/"+id(w.project)+"/members", `{"email":"anna@example.org","role_id":`+id(w.role)+`}`)
	w.create(w.token("anna@example.org"), "/workspaces", `{"project_id":`+id(w.project)+`,"name":"first","request":{"gpus":1,"cores":60}}`)
	at := "/launch?project_id=" + id(w.project)
	ann.shows(ann.page(200, "GET", at+"&gpus=1&cores=50"), "Cannot launch this workspace", "Launch with 50 GPU cores", "kind=limit", "!are available now")
	ann.shows(ann.page(200, "GET", at+"&gpus=1&cores=30"), "All 30 GPU cores are available now", "!Cannot launch")
	ann.shows(ann.page(200, "GET", at+"&cpu_milli=9"), "Cannot launch this workspace", "kind=limit", "!are available now")
	ann.shows(ann.page(200, "GET", at+"&gpus=2"), "200 requested; your role", `id="f-gpus-error"`, "Launch with 200 GPU cores", "!× 50")
	for _, unread := range []string{"&gpus=abc", "&gpus=99999999999999999999", "&gpus=1&version_constraints=jax"} {
		ann.shows(ann.page(200, "GET", at+unread), "Launch workspace", "!Launch without a GPU", "!Starts immediately", "!are available now")
	}
}

// The form of a run says the same as that of a launch, and an amount in a form is exactly
// what it was.
func TestRunFormAboveTheLimit(t *testing.T) {
	w := newWorld(t)
	ann := w.as("ann@example.org")
	at := "/runs/new?project_id=" + id(w.project)
	ann.shows(ann.page(200, "GET", at+"&gpus=1&cores=100&cpu_milli=9"), "kind=limit", "!are available now", `id="f-cpu_milli-error"`)
	ann.shows(ann.page(200, "GET", at+"&gpus=1&cores=50"), "All 50 GPU cores are available now", "!kind=limit")
	root := w.visitor("ada@example.org", true)
	w.want(200, w.admin, "PUT", "/projects/"+id(w.project), `{"name":"vision","quota":`+plenty+`,"launch":{"cpu_milli":1234,"memory_mib":15000}}`)
	root.shows(root.page(200, "GET", "/projects/"+id(w.project)+"/edit"), `value="1.234"`, `value="14.648 GiB"`)
}

// The launch page selects the environment that its decision or refusal is about.
func TestLaunchPageSelectsWhatItJudges(t *testing.T) {
	w := newWorld(t)
	ann := w.as("ann@example.org")
	large := w.create(w.admin, "/environments", `{"name":"Large","language":"python","language_version":"3.13.1","minimum":{"gpus":1,"cores":50},"command":["/usr/bin/jupyter"]}`)
	radio := func(environment int64, attributes string) string {
		return `name="environment_id" value="` + id(environment) + `"` + attributes
	}
	at := "/launch?project_id=" + id(w.project)
	ann.shows(ann.page(200, "GET", at+"&gpus=1&cores=60"), radio(large, " checked"), "!"+radio(w.environment, " checked"))
	// The best environment does not permit the amount.
	ann.shows(ann.page(200, "GET", at+"&gpus=1&cores=10"), radio(w.environment, " checked"), "!"+radio(large, " checked"), "All 10 GPU cores are available now")
	// The chosen one is refused, and stays selected.
	page := ann.page(200, "GET", at+"&gpus=1&cores=60&version_constraints=torch&environment_id="+id(large))
	ann.shows(page, radio(large, " checked"), "!"+radio(w.environment, " checked"), `id="f-environment_id-error"`, "does not have torch", "!are available now")
	// One that the page has selected does not stay.
	page = ann.page(200, "GET", at+"&gpus=1&cores=10&environment_id="+id(large)+"&environment_auto="+id(large))
	ann.shows(page, radio(w.environment, " checked"), "!"+radio(large, " checked"), `name="environment_auto" value="`+id(w.environment)+`"`)
	page = ann.page(200, "GET", at+"&environment_id=4711")
	ann.shows(page, "!"+radio(large, " checked"), "!"+radio(w.environment, " checked"), "s not in the catalog")
}
