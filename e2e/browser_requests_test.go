package e2e

import (
	"fmt"
	"testing"
)

// TestRequestInBrowser is a member who asks for a larger peak in English, and
// a manager who adjusts it in Chinese: each sees at once what the other does.
func TestRequestInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:4"})
	team := s.teamWithin("Speech", share.times(4), share, "wang")
	admin := s.api(s.admin())
	at := fmt.Sprintf("/projects/%d", team.Project)
	var lead, user id
	admin.must("POST", at+"/roles", map[string]any{"name": "lead", "permission": "manager", "limit": resources{}}, &lead)
	admin.must("POST", "/users", map[string]any{"email": "mei@example.org", "name": "Mei", "password": password}, &user)
	admin.must("POST", at+"/members", map[string]any{"email": "mei@example.org", "role_id": lead.ID}, nil)

	mei := chromium.person(t, s.url)
	inbox := mei.tab()
	inbox.acceptLanguage("zh-CN")
	inbox.signInChinese("mei@example.org")
	inbox.goTo("/requests")
	inbox.sees("待审批（0）")
	inbox.stay()

	wang := chromium.person(t, s.url)
	b := wang.tab()
	b.signIn("wang@example.org", password)
	b.goTo(at)
	b.press("Request a higher limit")
	b.at("/requests/new")
	b.fill("GPU cores", "150")
	b.fill("Reason", "two runs at once")
	b.shoot("request-new")
	b.press("Submit request")
	b.at(`/requests/\d+`)
	b.sees("Request submitted: higher limit in Speech.")
	change := fmt.Sprintf("%d → 150", share.GPUCores)
	b.sees(change)
	b.stay()

	inbox.sees("待审批（1）")
	inbox.sees(change)
	inbox.until("the number in the navigation", `document.querySelector("#nav-requests").textContent.trim() === "1"`)
	inbox.stayed()
	inbox.shoot("requests-inbox")
	inbox.press("提高 Speech 中的限额")
	inbox.at(`/requests/\d+`)
	inbox.sees("two runs at once")
	inbox.fill("GPU 核", "120")
	inbox.shoot("request-decide")
	inbox.press("批准")
	inbox.at("/requests")
	inbox.sees("已批准：提高 Speech 中的限额。")

	b.until("the decision", `document.querySelector("p.state .tag").textContent.trim() === "adjusted"`)
	b.sees("adjusted: 120")
	b.sees("Decided by Mei")
	b.stayed()
	b.shoot("request-decided")
	b.goTo("/notifications")
	b.sees("Your request was approved with changes: higher limit in Speech")
	for _, p := range []*person{mei, wang} {
		p.watch.clean()
	}
}
