package handlers

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"
)

// A calendar program reads reservations with a token as its password; nothing else is
// reached so.
func TestReservationsFeed(t *testing.T) {
	w := newWorld(t)
	start := w.store.Now().UTC().Truncate(time.Minute).Add(2 * time.Hour)
	made := id(w.create(w.member, "/reservations",
		`{"project_id":`+id(w.project)+`,"gpus":1,"cores":50,"duration_minutes":60,"from":"`+start.Format(time.RFC3339)+`"}`))
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me@example.org:"+w.member))

	a := w.send("", "GET", "/reservations.ics", "", "Authorization", basic)
	cal, err := ics.ParseCalendar(strings.NewReader(a.raw))
	if err != nil || a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "text/calendar") {
		t.Fatalf("%d %s %v: %s", a.status, a.header, err, a.raw)
	}
	events := cal.Events()
	if len(events) != 1 {
		t.Fatalf("%d events: %s", len(events), a.raw)
	}
	from, errFrom := events[0].GetStartAt()
	until, errUntil := events[0].GetEndAt()
	if errFrom != nil || errUntil != nil || !from.Equal(start) || !until.Equal(start.Add(time.Hour)) {
		t.Errorf("from %s until %s (%v, %v)", from, until, errFrom, errUntil)
	}
	for property, part := range map[ics.ComponentProperty]string{ics.ComponentPropertySummary: "1 × 50 GPU cores", ics.ComponentPropertyUrl: "/reservations/" + made} {
		if got := events[0].GetProperty(property); got == nil || !strings.Contains(got.Value, part) {
			t.Errorf("%s: %+v, want %q", property, got, part)
		}
	}
	tag := a.header.Get("ETag")
	if again := w.send("", "GET", "/reservations.ics", "", "Authorization", basic, "If-None-Match", tag); again.status != http.StatusNotModified {
		t.Errorf("unchanged: %d", again.status)
	}

	w.want(http.StatusOK, w.member, "POST", "/reservations/"+made+"/cancel", "")
	a = w.send("", "GET", "/reservations.ics", "", "Authorization", basic, "If-None-Match", tag)
	if a.status != http.StatusOK || strings.Contains(a.raw, "VEVENT") {
		t.Errorf("canceled: %d %s", a.status, a.raw)
	}

	challenge := func(a answer) string { return strings.Join(a.header.Values("WWW-Authenticate"), ", ") }
	for i := range 201 { // more than lists have on a page
		at := start.Add(time.Duration(i) * time.Minute).Format(time.RFC3339)
		w.create(w.member, "/reservations", `{"project_id":`+id(w.project)+`,"gpus":1,"cores":10,"duration_minutes":1,"from":"`+at+`"}`)
	}
	if n := strings.Count(w.want(http.StatusOK, w.member, "GET", "/reservations.ics", "").raw, "BEGIN:VEVENT"); n != 201 {
		t.Errorf("%d events of 201", n)
	}

	if a := w.send("", "GET", "/reservations.ics", ""); a.status != http.StatusUnauthorized || !strings.Contains(challenge(a), "Basic") {
		t.Errorf("without a password: %d %s", a.status, a.header)
	}
	wrong := "Basic " + base64.StdEncoding.EncodeToString([]byte("me@example.org:"+w.member+"x"))
	if a := w.send("", "GET", "/reservations.ics", "", "Authorization", wrong); a.status != http.StatusUnauthorized || !strings.Contains(challenge(a), "Basic") {
		t.Errorf("with a wrong password: %d %s", a.status, a.header)
	}
	for _, path := range []string{"/reservations", "/projects"} {
		if a := w.send("", "GET", path, "", "Authorization", basic); a.status != http.StatusUnauthorized {
			t.Errorf("a password at %s: %d", path, a.status)
		}
	}
	if page := w.page(w.member, "/reservations"); !strings.Contains(page, "/api/v1/reservations.ics?user_id=") {
		t.Error("the page does not tell the address")
	}
}
