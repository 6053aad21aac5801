package e2e

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
)

// tagged is a tag of that word on a page.
func tagged(word string) string {
	return `[...document.querySelectorAll("main .tag")].some((e) => e.textContent.trim() === "` + word + `")`
}

// TestPoolInBrowser is a machine's life in the pool, as its owner, an
// administrator and a member see it, without anybody loading a page again.
func TestPoolInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, quick(options{gpus: "none"}))
	axe := readAxe(t)
	s.admin()
	limit := resources{GPUCores: 100, GPUMemoryMiB: 80 << 10, CPUMilli: 4000, MemoryMiB: 8 << 10, StorageMiB: 10 << 10}
	team := s.team("Speech", limit, "wang")
	wang := team.Members[0]

	pool := chromium.person(t, s.url).tab()
	pool.signIn("operator@example.org", password)
	pool.goTo("/pool")
	pool.sees("No providers yet.")
	pool.stay()

	desk := chromium.person(t, s.url).tab()
	desk.signIn("operator@example.org", password)
	m := newMachine(t, s, "desk")
	enrolInBrowser(desk, m)
	pool.until("the machine's two GPUs", `document.querySelectorAll("svg.bar").length === 2 && document.querySelector("h2 a[href^='/pool/providers/']").textContent === "desk"`)
	pool.until("what they compute", `/%/.test(document.querySelectorAll(".facts dd")[2].textContent)`)
	pool.stayed()

	member := chromium.person(t, s.url).tab()
	member.signIn(wang.Email, password)
	wang.running(team.Project, "notebook")
	pool.until("wang's share", `document.querySelector('svg.bar[aria-label*="Speech · wang: 50 GPU cores"]')`)
	pool.stayed()
	pool.shoot("pool-machine")
	member.goTo("/workspaces/1")
	member.sees("Resources")
	member.stay()

	ownsMachine(desk, pool, member)
	measures(axe, desk)
	m.kill()
	pool.until("the lost machine", tagged("lost")+` && document.querySelector("svg.bar.lost")`)
	pool.stayed()
	member.sees("Provider desk is lost.")
	member.stayed()
	pool.shoot("pool-lost")
	member.shoot("workspace-lost")
	axe.visits(desk, pathsOf("/pool", "/pool/providers/2"))
	m.start("")
	pool.until("the machine back", tagged("online")+` && !document.querySelector("svg.bar.lost")`)
	pool.stayed()
	for _, b := range []*tab{pool, desk, member} {
		b.watch.clean()
	}
}

// TestManyViewersInBrowser is a page with a topic that so many follow that their requests
// are spread: it fetches itself after each change, too.
func TestManyViewersInBrowser(t *testing.T) {
	t.Parallel()
	const viewers = 300
	chromium := startChromium(t)
	s := newServer(t, options{args: quiet})
	admin := s.api(s.admin())
	page := chromium.person(t, s.url).tab()
	page.signIn("operator@example.org", password)
	crowd := s.crowd(t, s.onlookers(viewers), viewers)
	page.goTo("/departments")
	page.stay()
	for n := range 3 {
		admin.must("PUT", "/pool/devices/1", map[string]any{"sharing": "time-slicing", "mixed": n%2 == 0}, nil)
		page.until(fmt.Sprintf("the page after change %d", n+1),
			fmt.Sprintf(`performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/departments")).length === %d`, n+1))
	}
	page.stayed()
	stream := bufio.NewReader(crowd.conns[0])
	text, err := stream.ReadString('\n')
	for err == nil && (text == ": alive\n" || text == "\n") { // a quiet stream says that it is alive
		text, err = stream.ReadString('\n')
	}
	if err != nil || text != "event: jitter\n" {
		t.Errorf("the streams say %q, %v", text, err)
	}
	page.watch.clean()
}

// enrolInBrowser takes an authorization code from the page to the machine.
func enrolInBrowser(b *tab, m *machine) {
	b.t.Helper()
	b.goTo("/pool")
	b.press("Add provider")
	b.at("/pool/providers/new")
	b.shoot("provider-new")
	b.fill("GPU code", "1234")
	b.loads(func() { b.press("Create authorization code") })
	b.sees("must be the 16 letters and digits")
	b.fill("GPU code", strings.ToLower(m.gpuCode()))
	b.fill("Name", "desk")
	b.loads(func() { b.press("Create authorization code") })
	b.sees("Run this on the machine")
	b.shoot("provider-code")
	command := eval[string](b, `document.querySelector("#command").textContent.trim()`)
	start, code, found := strings.Cut(command, " --code ")
	if !found || start != "weir agent --server "+b.origin {
		b.t.Fatalf("the page says to run %q", command)
	}
	m.start(code)
	b.press("Go to pool")
	b.at("/pool")
}

// ownsMachine drains, resumes and recalls, and gives the machine hours; the
// others see it at once.
func ownsMachine(desk, pool, member *tab) {
	desk.t.Helper()
	desk.goTo("/pool")
	desk.press("desk")
	desk.at(`/pool/providers/\d+`)
	desk.shoot("provider")
	for _, step := range [][2]string{{"Drain", "draining"}, {"Resume", "online"}} {
		desk.loads(func() { desk.press(step[0]) })
		pool.until("the machine "+step[1], tagged(step[1]))
	}
	desk.sees("Shares that will end: 1; members affected: 1.")
	desk.fill("Grace period in minutes", "90")
	desk.fill("Reason", "exam week")
	desk.loads(func() { desk.press("Recall") })
	pool.until("the recalled machine", tagged("recalled"))
	pool.sees("Shares here end at")
	member.sees("The share of GPU 0 on desk ends at")
	member.sees("exam week")
	member.shoot("workspace-ending")
	desk.loads(func() { desk.press("Resume") })
	member.until("no warning", `!document.querySelector("main .flash")`)
	member.stayed()

	desk.fill("Cores per GPU", "80")
	desk.press("Set hours")
	desk.pressAt("Monday", `document.querySelector("input[name='hours[0].days.1']")`)
	desk.loads(func() { desk.press("Save terms") })
	desk.sees("must be a time of day such as 09:00")
	desk.shoot("provider-refused")
	desk.pressAt("Monday", `document.querySelector("input[name='hours[0].days.1']")`)
	desk.loads(func() { desk.press("Save terms") })
	desk.sees("Terms saved.")
	pool.sees("30 free")
	pool.stayed()
}

// measures looks at a GPU's charts and changes how it is shared, and holds
// the pages to axe-core's rules.
func measures(a axe, b *tab) {
	b.t.Helper()
	device := eval[string](b, `document.querySelector(".gpu-name a").getAttribute("href")`)
	b.goTo(device)
	b.until("charts with what was measured", `document.querySelectorAll("figure.chart path.line-mean[d^=M]").length === 4`)
	b.stay()
	before := eval[string](b, `document.querySelector(".measured time").getAttribute("datetime")`)
	b.until("a newer measurement", `document.querySelector(".measured time").getAttribute("datetime") !== "`+before+`"`)
	b.stayed()
	b.press("Last day")
	b.at(device)
	b.until("the charts of a day", `document.querySelectorAll("figure.chart").length === 4`)
	b.shoot("device")
	b.goTo("/pool")
	b.press("GPU 1")
	b.at(`/pool/devices/\d+`)
	b.pressAt("exclusive", labelled("Exclusive"))
	b.loads(func() { b.press("Save") })
	b.sees("Device updated.")
	a.visits(b, []visit{{"/pool", openDetails}, {"/pool/providers/2", nil}, {"/pool/providers/2/revoke", nil}, {"/pool/providers/2/remove", nil},
		{device, openDetails}, {"/pool/planning?add=h100:8x2", openDetails}, {"/pool/planning?add=toaster", nil}})
	b.goTo("/pool/planning?add=h100:8x2")
	b.shoot("plan-capacity")
}
