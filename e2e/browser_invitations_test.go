package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestInvitationInBrowser is a manager who invites two people with one form, one of
// them reading Chinese, and an administrator who makes a link for a new password.
func TestInvitationInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:4"})
	team := s.teamWithin("Speech", share.times(4), share, "wang")
	at := fmt.Sprintf("/projects/%d", team.Project)

	p := chromium.person(t, s.url)
	b := p.tab()
	b.signIn("operator@example.org", password)
	b.goTo(at)
	b.press("Invite people")
	b.at(at + "/invitations/new")
	b.until("that the least role is chosen", `document.querySelector("input[name=role_id]:checked").closest("label").innerText.includes("engineer")`)
	b.shoot("invite")
	eval[bool](b, `document.querySelector("textarea[name=emails]").value = "mei@example.org\nbad\nworse"; true`)
	b.press("Invite")
	b.sees("bad: must be an email address such as name@example.org; worse: must be")
	b.shoot("invite-refused")
	eval[bool](b, `document.querySelector("textarea[name=emails]").value = "mei@example.org, sun@example.org"; true`)
	b.press("Invite")
	b.sees("They will not be shown again.")
	b.shoot("invited")
	links := strings.Fields(eval[string](b, `[...document.querySelectorAll(".secret code")].map((c) => c.textContent).join(" ")`))
	if len(links) != 2 {
		t.Fatalf("the page shows the links %q", links)
	}

	mei := chromium.person(t, s.url)
	m, again := mei.tab(), mei.tab()
	m.acceptLanguage("zh-CN")
	open := func(b *tab, link string) { b.t.Helper(); b.goTo(strings.TrimPrefix(link, s.url)) }
	open(m, links[0])
	open(again, links[0])
	m.sees("项目 Speech 的邀请")
	m.shoot("invitation")
	m.fill("名称", "Mei")
	m.fill("密码", password)
	m.fill("确认密码", password)
	m.press("接受邀请")
	m.at("/")
	m.sees("欢迎加入 Speech。")
	m.sees("Speech")
	again.fill("Name", "Other")
	again.fill("Password", password)
	again.fill("Confirm password", password)
	again.press("Accept invitation")
	again.sees("already been accepted")
	again.shoot("invitation-closed")

	b.goTo(at + "/invitations")
	b.sees("accepted")
	b.shoot("invitations")
	b.press("Revoke sun@example.org")
	b.sees("Revoke the invitation of sun@example.org?")
	b.shoot("revoke")
	b.press("Revoke invitation")
	b.sees("The invitation of sun@example.org was revoked.")
	sun := chromium.person(t, s.url).tab()
	open(sun, links[1])
	sun.sees("revoked or replaced")

	b.goTo("/people")
	b.press("wang")
	b.press("Create password link")
	b.sees("It will not be shown again.")
	b.shoot("password-link")
	link := eval[string](b, `document.querySelector(".secret code").textContent`)
	wang := chromium.person(t, s.url).tab()
	wang.goTo("/signin")
	wang.press("Forgot password?")
	wang.sees("This portal does not send email.")
	wang.shoot("forgot")
	open(wang, link)
	wang.shoot("password")
	wang.fill("New password", "another "+password)
	wang.fill("Confirm password", "another "+password)
	wang.press("Set password")
	wang.at("/")
	wang.sees("Password changed.")
	p.watch.clean()
}
