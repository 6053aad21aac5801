package e2e

import (
	"testing"
	"time"
)

// People choose the time zone in which pages show times to them, whatever that of the browser is.
func TestTimeZoneInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{})
	ada := s.team("travelers", share.times(2), "ada").Members[0]
	p := chromium.person(t, s.url)
	b := p.tab()
	b.signIn(ada.Email, password)
	shows := func(zone string) bool {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		const first = `document.querySelector("main time[data-time=moment]")`
		at, err := time.Parse(time.RFC3339, eval[string](b, first+`.dateTime`))
		if err != nil {
			t.Fatal(err)
		}
		return eval[string](b, first+`.textContent`) == at.In(location).Format("2006-01-02 15:04")
	}
	b.goTo("/account")
	b.fill("Time zone", "Mars/Crater")
	b.loads(func() { b.pressAt("Save", `document.querySelector("form[action='/account'] button")`) })
	b.sees("is not a known time zone")
	for _, zone := range []string{"Asia/Kathmandu", "America/St_Johns"} {
		b.fill("Time zone", zone)
		b.loads(func() { b.pressAt("Save", `document.querySelector("form[action='/account'] button")`) })
		b.sees("Saved.")
		if !shows(zone) {
			t.Errorf("in %s the page shows %s", zone, eval[string](b, "document.body.innerText"))
		}
	}
	b.shoot("account-time-zone")
	b.goTo("/reservations/calendar")
	b.sees("America/St_Johns")
	p.watch.clean()
}
