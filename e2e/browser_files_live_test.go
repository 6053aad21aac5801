package e2e

import (
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// seesOtherTab changes a directory in another tab.
func (b *tab) seesOtherTab(page string) {
	b.t.Helper()
	b.goTo(page)
	b.shows("checkpoints", "run")
	b.stay()
	other := b.person.tab()
	other.goTo(page)
	other.pressAt("the name of a directory", `document.querySelector("#f-directory")`)
	other.keys("from-the-other-tab")
	other.loads(func() { other.press("Create") })
	b.front()
	b.shows("checkpoints", "from-the-other-tab", "run")
	b.stayed()
	b.clicksDuringChange(other, "run")
	b.goTo(page)
	b.shows("checkpoints", "from-the-other-tab", "run", "zone")
}

// clicksDuringChange presses the link to the details of a file, and releases it after the list has changed.
func (b *tab) clicksDuringChange(other *tab, name string) {
	b.t.Helper()
	at := eval[[]float64](b, `(() => { const r = (`+named("Details of "+name)+`).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
	send := func(kind input.DispatchMouseEventType) {
		once := func(p *input.DispatchMouseEventParams) { p.ClickCount = 1 }
		if err := chromedp.Do(b.ctx, chromedp.MouseEvent(kind, at[0], at[1], chromedp.ButtonLeft, once)); err != nil {
			b.t.Fatal(err)
		}
	}
	send(input.DispatchMouseEventTypeMousePressed)
	other.pressAt("the name of a directory", `document.querySelector("#f-directory")`)
	other.keys("zone")
	other.loads(func() { other.press("Create") })
	b.front()
	b.shows("checkpoints", "from-the-other-tab", "run", "zone")
	send(input.DispatchMouseEventTypeMouseReleased)
	b.until("the details", `location.pathname.endsWith("/files/entry")`)
}
