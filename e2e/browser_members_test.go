package e2e

import (
	"fmt"
	"testing"
)

// TestRolesAndMembersInBrowser is an administrator who sees, while numbers are
// typed, what would come of them, and who brings members in by a table.
func TestRolesAndMembersInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:4"})
	team := s.teamWithin("Speech", share.times(4), share, "wang", "li")
	admin := s.api(s.admin())
	at := fmt.Sprintf("/projects/%d", team.Project)
	var user id
	admin.must("POST", "/users", map[string]any{"email": "mei@example.org", "name": "Mei", "password": password}, &user)

	p := chromium.person(t, s.url)
	b := p.tab()
	b.signIn("operator@example.org", password)
	b.goTo(at + "/roles/1/edit")
	result := func(text string) string {
		return `document.querySelector("#preview .tag")?.textContent.trim() === "` + text + `"`
	}
	b.until("the preview", result("within quota"))
	b.stay()
	b.fill("GPU cores", "9999")
	b.until("the refusal", result("would be refused"))
	b.sees("exceeded by")
	b.until("the focus where it was", "document.activeElement === "+labelled("GPU cores")+` && document.activeElement.value === "9999"`)
	b.fill("GPU cores", "1")
	b.until("that it fits again", result("within quota"))
	b.stayed()
	b.shoot("role-preview")

	b.goTo(at)
	b.press("Import")
	b.at(at + "/members/import")
	role := eval[string](b, `fetch("/api/v1`+at+`/roles").then((r) => r.json()).then((l) => l.items[0].name)`)
	eval[bool](b, `document.querySelector("textarea[name=csv]").value = "email,role,joined\nmei@example.org,`+role+`,2026-01-31\nwang@example.org,nothing,"; true`)
	b.press("Check")
	b.sees("1 to add, 0 to update, 0 unchanged, 1 refused.")
	b.shoot("import-refused")
	eval[bool](b, `document.querySelector("textarea[name=csv]").value = "email,role,joined\nmei@example.org,`+role+`,2026-01-31"; true`)
	b.press("Check")
	b.sees("1 to add, 0 to update, 0 unchanged, 0 refused.")
	b.press("Import 1 row")
	b.at(at)
	b.sees("Import complete: 1 added, 0 changed, 0 unchanged.")
	b.sees("mei@example.org")
	b.sees("2026-01-31")
	p.watch.clean()
}
