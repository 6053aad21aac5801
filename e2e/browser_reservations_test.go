package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// TestReservationInBrowser reserves a GPU now and one tomorrow, by form and by dragging
// over the calendar, runs a real notebook in the first and cancels it.
func TestReservationInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:1"})
	limit := resources{GPUCores: 100, GPUMemoryMiB: 80 << 10, CPUMilli: 4000, MemoryMiB: 8 << 10, StorageMiB: 10 << 10}
	team := s.team("Speech", limit, "wang", "li")
	wang, li := team.Members[0], team.Members[1]
	b := chromium.person(t, s.url).tab()
	b.signIn(wang.Email, password)
	b.loads(func() { b.press("Reservations") })
	b.sees("No reservations.")
	b.shoot("reservations-empty")
	b.press("Reserve GPUs")
	b.fill("Cores per GPU", "60")
	b.fill("Duration", "120")
	b.until("the preview", `document.querySelector("#preview").innerText.includes("48 GiB")`)
	b.shoot("reserve")
	b.loads(func() { b.press("Reserve") })
	b.until("the start", tagged("active"))
	b.shoot("reservation")
	axe := readAxe(t)
	axe.load(b)
	check(b, "a reservation")

	// Others get what is left, at once and later.
	var refused problem
	launch := launchBody(team.Project, "beside")
	launch["request"] = map[string]any{"gpus": 1, "cores": 50}
	if status := li.call("POST", "/workspaces", launch, &refused); status != 409 || refused.Kind != "no_capacity" {
		t.Errorf("a launch beside the reservation got %d %+v", status, refused)
	}
	b.press("Launch workspace")
	b.until("the launch form", `document.querySelector("#f-reservation_id") || document.querySelector("[name=reservation_id]")`)
	b.loads(func() { b.press("Launch with 60 GPU cores") })
	b.until("the notebook", tagged("running"))
	if used := s.api(s.admin()).inUse(); len(used) != 1 || slices.Max(slices.Collect(maps.Values(used))) != 60 {
		t.Errorf("in use is %v", used)
	}
	workspace := eval[string](b, "location.pathname")

	tomorrow := time.Now().UTC().AddDate(0, 0, 1)
	b.goTo(fmt.Sprintf("/reservations/calendar?project_id=%d&view=day&time_zone=UTC&date=%s", team.Project, tomorrow.Format(time.DateOnly)))
	b.sees("GPU cores that your project can reserve.")
	b.shoot("calendar-day")
	axe.load(b)
	check(b, "the calendar")
	b.drags(`[...document.querySelectorAll(".calendar td a")][9]`, `[...document.querySelectorAll(".calendar td a")][11]`)
	b.until("the form", `location.pathname === "/reservations/new" && document.readyState === "complete"`)
	for name, want := range map[string]string{"from": tomorrow.Format("2006-01-02T") + "09:00", "until": tomorrow.Format("2006-01-02T") + "12:00", "duration_minutes": "180", "time_zone": "UTC"} {
		if got := eval[string](b, fmt.Sprintf("document.querySelector('[name=%s]').value", name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	b.until("the preview", `document.querySelector("#preview").innerText.includes("All can be reserved at the earliest start.")`)
	b.loads(func() { b.press("Reserve") })
	b.until("the reservation", tagged("reserved"))
	b.loads(func() { b.press("Reservations") })
	b.shoot("reservations")
	for _, view := range []string{"week", "month"} {
		b.goTo(fmt.Sprintf("/reservations/calendar?project_id=%d&view=%s&time_zone=UTC", team.Project, view))
		b.shoot("calendar-" + view)
	}
	b.goTo("/reservations/1")
	b.press("Cancel reservation")
	b.until("the question", `document.querySelector("dialog[open]")?.innerText.includes("Workspaces in it are stopped.")`)
	b.loads(func() { b.pressAt("the confirmation", `document.querySelector("dialog[open] button[type=submit]")`) })
	b.until("the end", tagged("canceled"))
	b.goTo(workspace)
	b.until("the stop", tagged("stopped"))
	b.acceptLanguage("zh-CN")
	b.inChinese(readCatalog(t), "/reservations?state=all", "/reservations/1", "/reservations/2", "/reservations/new", "/reservations/calendar?time_zone=UTC")
}

// drags presses the mouse over one element and releases it over another.
func (b *tab) drags(from, to string) {
	b.t.Helper()
	at := func(js string) []float64 {
		return eval[[]float64](b, `(() => { const r = (`+js+`).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
	}
	send := func(kind input.DispatchMouseEventType, xy []float64) {
		if err := chromedp.Do(b.ctx, chromedp.MouseEvent(kind, xy[0], xy[1], chromedp.ButtonLeft)); err != nil {
			b.t.Fatal(err)
		}
	}
	a, z := at(from), at(to)
	send(input.DispatchMouseEventTypeMousePressed, a)
	for i := range 5 {
		part := float64(i+1) / 5
		send(input.DispatchMouseEventTypeMouseMoved, []float64{a[0] + (z[0]-a[0])*part, a[1] + (z[1]-a[1])*part})
	}
	send(input.DispatchMouseEventTypeMouseReleased, z)
}
