//go:build screenshots

// Pictures of every page in both languages, wide and narrow, with the text of
// the page beside them:
//
//	WEIR_SCREENSHOTS=DIR go test -tags screenshots -run Screenshots ./e2e
package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestScreenshots writes pictures of a fresh portal and of a busy one.
func TestScreenshots(t *testing.T) {
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:8"})
	setup := strings.TrimPrefix(s.setupLink(), s.url)
	stranger := chromium.person(t, s.url).tab()
	stranger.photograph("stranger", append(looksOf("setup", setup, "setup-used", "/setup?token=used", "signin", "/signin", "password-forgot", "/password/forgot"),
		look{"setup-refused", setup, submitEmpty}, look{"signin-refused", "/signin", submitEmpty}))
	s.admin()
	operator := chromium.person(t, s.url).tab()
	operator.signIn("operator@example.org", password)
	operator.photograph("fresh", looksOf("home", "/", "start", "/projects/start", "projects", "/projects", "workspaces", "/workspaces", "pool", "/pool", "capacity", "/capacity",
		"requests", "/requests", "requests-new", "/requests/new", "people", "/people", "departments", "/departments", "webhooks", "/webhooks",
		"notifications", "/notifications", "launch", "/launch", "planning", "/pool/planning", "planning-add", "/pool/planning?add=h100:8", "environments", "/environments"))

	wang := busy(s)
	readmePictures(operator)
	b := chromium.person(t, s.url).tab()
	b.signIn(wang.Email, password)
	b.photograph("member", memberLooks())
	operator.photograph("operator", append(operatorLooks(), stateLooks()...))
	nora := chromium.person(t, s.url).tab()
	nora.signIn("nora@example.org", password)
	nora.photograph("outsider", looksOf("home", "/", "forbidden", "/audit", "hidden", "/projects/1", "audit-of-project", "/audit?project_id=1"))
}

func readmePictures(b *tab) {
	b.t.Helper()
	b.goTo("/pool")
	for _, scheme := range schemes {
		b.scheme(scheme)
		b.picture(filepath.Join(os.Getenv("WEIR_SCREENSHOTS"), "readme-"+scheme+".png"))
	}
	b.scheme("")
}

// look is a page of which pictures are taken.
type look struct {
	name, path string
	then       func(b *tab) // brings the page into the state, or nil
}

// looksOf pairs names with paths.
func looksOf(pairs ...string) (all []look) {
	for pair := range slices.Chunk(pairs, 2) {
		all = append(all, look{pair[0], pair[1], nil})
	}
	return all
}

// inDark names the pages of which dark pictures are taken, too.
var inDark = []string{"home", "pool", "device", "provider", "project", "launch", "running", "capacity", "audit", "requests", "signin", "role-preview", "usage", "request-decide"}

// photograph writes pictures of pages, and their texts.
func (b *tab) photograph(set string, looks []look) {
	b.t.Helper()
	for _, l := range looks {
		for _, lang := range []string{"en", "zh"} {
			b.acceptLanguage(lang)
			b.goTo(l.path)
			if l.then != nil {
				l.then(b)
			}
			name := filepath.Join(os.Getenv("WEIR_SCREENSHOTS"), set+"-"+l.name+"-"+lang)
			text := eval[string](b, `document.title + "\n" + document.querySelector("main").innerText`)
			if err := os.WriteFile(name+".txt", []byte(text), 0o644); err != nil {
				b.t.Fatal(err)
			}
			b.fourPictures(name, slices.Contains(inDark, l.name))
		}
	}
	b.acceptLanguage("en")
}

func (b *tab) fourPictures(name string, dark bool) {
	b.t.Helper()
	defer b.resize(wide, 900)
	defer b.scheme("")
	for _, width := range []int64{wide, narrow} {
		for _, scheme := range schemes {
			if scheme == "dark" && !dark {
				continue
			}
			b.scheme(scheme)
			b.resize(width, 800)
			b.resize(width, min(max(eval[int64](b, "document.scrollingElement.scrollHeight"), 800), 5000))
			b.picture(name + "-" + strconv.FormatInt(width, 10) + "-" + scheme + ".png")
		}
	}
	fits(b, name)
}

// submits fills fields by their names and sends their form.
func submits(fields map[string]string) func(b *tab) {
	return func(b *tab) {
		b.t.Helper()
		values, _ := json.Marshal(fields)
		b.loads(func() {
			eval[bool](b, `(() => { let form = null; for (const [name, value] of Object.entries(`+string(values)+`)) {
				const e = document.querySelector("main [name='" + name + "']"); e.value = value; form = e.form; }
				form.noValidate = true; form.requestSubmit(); return true; })()`)
		})
	}
}

// fills fills fields by their names, as typing does.
func fills(fields map[string]string) func(b *tab) {
	return func(b *tab) {
		b.t.Helper()
		values, _ := json.Marshal(fields)
		eval[bool](b, `(() => { for (const [name, value] of Object.entries(`+string(values)+`)) {
			const e = document.querySelector("main [name='" + name + "']"); e.value = value; e.dispatchEvent(new Event("input", {bubbles: true})); } return true; })()`)
		eval[bool](b, `new Promise((r) => setTimeout(() => r(true), 1500))`)
	}
}

// clicks presses what a selector finds.
func clicks(selector string) func(b *tab) {
	return func(b *tab) {
		b.t.Helper()
		b.loads(func() { eval[bool](b, "document.querySelector("+strconv.Quote(selector)+").click() || true") })
	}
}

func memberLooks() []look {
	return append(looksOf("home", "/", "projects", "/projects", "project", "/projects/1", "workspaces", "/workspaces?state=all", "running", "/workspaces/1",
		"queued", "/workspaces/7", "failed", "/workspaces/8", "stopped", "/workspaces/9", "pool", "/pool", "device", "/pool/devices/1", "provider", "/pool/providers/1",
		"launch", "/launch?gpus=1&cores=40", "launch-short", "/launch?gpus=4&cores=100", "launch-refused", "/launch?version_constraints=jax", "launch-over", "/launch?gpus=8&cores=100", "launch-none", "/launch?gpus=0",
		"requests", "/requests", "request-new", "/requests/new", "request-project", "/requests/new?kind=project", "request-join", "/requests/new?kind=join",
		"request-limit", "/requests/new?kind=limit&project_id=1", "request-role", "/requests/new?kind=role&project_id=1", "request-quota", "/requests/new?kind=quota",
		"request-period", "/requests/new?kind=period", "request-deadline", "/requests/new?kind=deadline", "request-own", "/requests/1", "request-refused", "/requests/2",
		"notifications", "/notifications", "usage", "/projects/1/usage", "account", "/account", "tokens", "/tokens", "access", "/access?project_name=Speech+models&right=role:write",
		"files", "/projects/1/files", "files-directory", "/projects/1/files?path=/notebook/1/project_model", "files-found", "/projects/1/files?q=project", "files-trash", "/projects/1/files/trash", "files-access", "/projects/1/files/access?path=/notebook/1/project_model",
		"api", "/api/docs", "foreign", "/projects/2", "foreign-workspace", "/workspaces/3", "environments", "/environments",
		"log", "/workspaces/1/log", "rename", "/workspaces/1/rename", "restart", "/workspaces/1/restart", "stop", "/workspaces/stop?id=1",
		"runs", "/runs", "run", "/runs/1", "run-new", "/runs/new?gpus=1&cores=20", "run-delete", "/runs/1/delete",
		"reservations", "/reservations", "reservation", "/reservations/1", "reservation-new", "/reservations/new", "reservation-change", "/reservations/1/change",
		"reservation-cancel", "/reservations/1/cancel", "calendar", "/reservations/calendar", "calendar-month", "/reservations/calendar?view=month",
		"deployments", "/deployments", "deployment-new", "/deployments/new", "barriers", "/barriers", "graphs", "/graphs", "accounting", "/projects/1/accounting",
		"search", "/search?q=speech", "docs", "/docs", "docs-page", "/docs/tutorial/engineer", "docs-search", "/docs?q=quota",
		"second-factor", "/account/second-factor/setup", "passkey-new", "/account/passkeys/new", "sessions-end", "/account/sessions/end"),
		look{"launch-details", "/launch?gpus=1&cores=200&env=%3D", openDetails}, look{"request-project-refused", "/requests/new?kind=project", submitEmpty},
		look{"token-new", "/tokens", submits(map[string]string{"name": "laptop"})}, look{"account-refused", "/account", submitEmpty})
}

func operatorLooks() []look {
	return looksOf("home", "/", "projects", "/projects", "projects-search", "/projects?sort=remaining&order=desc&q=e", "project", "/projects/1", "project-new", "/projects/new",
		"project-edit", "/projects/1/edit", "role-new", "/projects/1/roles/new", "role-edit", "/projects/1/roles/1/edit", "role-delete", "/projects/1/roles/1/delete",
		"role-delete-unused", "/projects/1/roles/4/delete",
		"member-new", "/projects/1/members/new", "member-edit", "/projects/1/members/1/edit", "member-delete", "/projects/1/members/1/delete",
		"members-import", "/projects/1/members/import", "former-members", "/projects/2/former-members", "former-none", "/projects/3/former-members",
		"invitations", "/projects/1/invitations", "invitations-new", "/projects/1/invitations/new", "invitations-all", "/invitations",
		"handover", "/projects/2/members/7/handover", "project-former", "/projects/2", "usage", "/projects/1/usage",
		"pool", "/pool", "device", "/pool/devices/1", "device-free", "/pool/devices/8", "provider", "/pool/providers/1", "provider-new", "/pool/providers/new", "provider-remove", "/pool/providers/1/remove",
		"provider-revoke", "/pool/providers/1/revoke", "planning", "/pool/planning", "planning-add", "/pool/planning?add=h100:8", "planning-bad", "/pool/planning?add=nonsense", "capacity", "/capacity",
		"environments", "/environments", "environment-new", "/environments/new", "environment-edit", "/environments/2/edit", "environment-delete", "/environments/2/delete",
		"requests", "/requests", "request-decide", "/requests/1", "request-decide-project", "/requests/3", "request-decide-join", "/requests/4", "request-refused", "/requests/2", "workspaces", "/workspaces?state=all", "workspace", "/workspaces/1",
		"people", "/people", "people-search", "/people?q=zz", "person", "/people/2", "person-new", "/people/new", "people-import", "/people/import",
		"departments", "/departments", "department", "/departments/1", "department-new", "/departments/new", "department-delete", "/departments/1/delete",
		"access", "/access", "access-of", "/access?email=wang@example.org", "access-checked", "/access?email=wang@example.org&project_name=Speech+models&right=role:write",
		"audit", "/audit", "audit-none", "/audit?actor=nobody", "audit-bad", "/audit?object_id=x", "webhooks", "/webhooks", "webhook", "/webhooks/1", "webhook-new", "/webhooks/new",
		"webhook-delete", "/webhooks/1/delete", "webhook-rotate", "/webhooks/1/rotate", "notifications", "/notifications", "tokens", "/tokens", "token-delete", "/tokens/1/delete",
		"account", "/account", "file-rules", "/projects/1/files/rules", "file-access", "/projects/1/files/access?path=/notebook/1/project_model",
		"usage-all", "/usage", "accounting-all", "/accounting", "prices", "/prices", "price-new", "/prices/new", "curators", "/curators",
		"sign-in-policy", "/sign-in-policy", "second-factor-reset", "/people/2/second-factor/reset", "member-tokens", "/projects/1/members/1/tokens",
		"service-account-new", "/projects/1/service-accounts/new", "search", "/search?q=gpu",
		"nowhere", "/nowhere", "no-project", "/projects/99", "bad-number", "/projects/x")
}

// stateLooks are pages after something was sent or typed.
func stateLooks() []look {
	var all []look
	for name, path := range map[string]string{"project": "/projects/new", "role": "/projects/1/roles/new", "member": "/projects/1/members/new", "environment": "/environments/new",
		"person": "/people/new", "department": "/departments/new", "provider": "/pool/providers/new", "webhook": "/webhooks/new", "members-import": "/projects/1/members/import"} {
		all = append(all, look{name + "-refused", path, submitEmpty})
	}
	return append(all,
		look{"role-preview", "/projects/1/roles/1/edit", fills(map[string]string{"limit.gpu_cores": "200"})},
		look{"role-preview-over", "/projects/1/roles/1/edit", fills(map[string]string{"limit.gpu_cores": "9999"})},
		look{"project-preview", "/projects/1/edit", fills(map[string]string{"quota.gpu_cores": "100"})},
		look{"member-import-checked", "/projects/1/members/import", submits(map[string]string{"csv": "email,role,joined\nmei@example.org,engineer,2026-01-31\nzhao@example.org,nothing,\nnobody@example.org,engineer,"})},
		look{"people-import-checked", "/people/import", submits(map[string]string{"csv": "email,name,department\nfei@example.org,Fei,Research\nwang@example.org,Wang Fang,Research\nbad,,"})},
		look{"provider-code", "/pool/providers/new", submits(map[string]string{"gpu_code": "ABCD1234ABCD1234"})},
		look{"department-member", "/departments/1", nil},
		look{"details", "/projects/new", openDetails},
		look{"decide-refused", "/requests/1", submitDecision},
	)
}

// submitDecision refuses a request without a reason.
func submitDecision(b *tab) {
	b.t.Helper()
	b.loads(func() {
		eval[bool](b, `(() => { const e = document.querySelector("main button[value=refuse]"); e.form.noValidate = true; e.form.requestSubmit(e); return true; })()`)
	})
}
