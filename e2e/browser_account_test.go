package e2e

import "testing"

// A person changes their own name, sees the browsers in which they are signed in, and ends the
// session of another one, which then has to sign in again.
func TestAccountInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:1"})
	eve := s.sharing("eve").Members[0]
	elsewhere := chromium.person(t, s.url).tab()
	elsewhere.signIn(eve.Email, password)
	p := chromium.person(t, s.url)
	b := p.tab()
	b.signIn(eve.Email, password)

	b.goTo("/account")
	b.fill("Full name", "Eve Adams")
	b.loads(func() { b.pressAt("Save", `document.querySelector("form[action='/account'] button[type=submit]")`) })
	b.until("the new name", `document.querySelector("main h1").textContent.trim() === "Eve Adams"`)
	b.fill("Time zone", "Asia/Shanghai")
	b.loads(func() { b.pressAt("Save", `document.querySelector("form[action='/account'] button[type=submit]")`) })
	b.until("times in this zone", `document.querySelector("section[aria-labelledby=h-sessions] time").title.endsWith("GMT+8")`)
	if n := eval[int](b, `document.querySelectorAll("section[aria-labelledby=h-sessions] li").length`); n != 2 {
		t.Errorf("%d sessions are listed", n)
	}
	b.shoot("account-sessions")
	eval[bool](b, `(() => { const t = document.createElement("time"); Object.assign(t, { id: "ticks", dateTime: new Date(Date.now() - 120000).toISOString() });
		Object.assign(t.dataset, { time: "since", format: "running for %s" }); document.body.append(t); return true; })()`)
	b.until("that times go on without the server", `document.querySelector("#ticks").textContent.match(/^running for 2\smin$/) !== null`)
	b.pressAt("the end of the other session", `document.querySelector("section[aria-labelledby=h-sessions] li a[data-dialog]")`)
	b.sees("End the session of")
	b.loads(func() { b.pressAt("the confirmation", `document.querySelector("dialog button.danger")`) })
	b.until("the only session", `document.querySelectorAll("section[aria-labelledby=h-sessions] li").length === 1`)
	p.watch.clean()

	elsewhere.goTo("/account")
	elsewhere.at("/signin")
}
