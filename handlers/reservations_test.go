package handlers

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/models"
)

// A reservation is moved over REST and on its page, with a preview, and by version.
func TestChangeReservation(t *testing.T) {
	w := newWorld(t)
	at := func(hours int) string {
		return w.store.Now().UTC().Truncate(time.Minute).Add(time.Duration(hours) * time.Hour).Format(time.RFC3339)
	}
	body := func(starts, ends int) string {
		return `{"starts_at":"` + at(starts) + `","ends_at":"` + at(ends) + `"}`
	}
	place := "/reservations/" + id(w.create(w.member, "/reservations",
		`{"project_id":`+id(w.project)+`,"gpus":1,"cores":50,"duration_minutes":60,"from":"`+at(2)+`"}`))
	if a := w.send(w.member, "POST", place+"/preview", body(3, 5)); a.status != 200 || a.body["outcome"] != "granted" || !strings.Contains(a.raw, at(5)) {
		t.Errorf("the preview: %d %s", a.status, a.raw)
	}
	before := w.get(w.member, place)
	if before.body["starts_at"] != at(2) || before.body["may_change"] != true {
		t.Errorf("after a preview: %s", before.raw)
	}
	if a := w.send(w.member, "PATCH", place, body(3, 5), "If-Match", `"1"`); a.status != 200 || a.body["starts_at"] != at(3) || a.body["ends_at"] != at(5) {
		t.Errorf("moved: %d %s", a.status, a.raw)
	}
	if a := w.send(w.member, "PATCH", place, body(4, 6), "If-Match", `"1"`); a.status != 412 {
		t.Errorf("of an old version: %d %s", a.status, a.raw)
	}
	if a := w.send(w.manager, "PATCH", place, body(4, 6)); a.status != 403 {
		t.Errorf("by somebody else: %d %s", a.status, a.raw)
	}
	if page := w.page(w.member, place); !strings.Contains(page, place+"/change") {
		t.Errorf("its page leads to no change: %s", page)
	}
	local := func(hours int) string {
		return w.store.Now().UTC().Truncate(time.Minute).Add(time.Duration(hours) * time.Hour).Format("2006-01-02T15:04")
	}
	form := url.Values{"starts_at": {local(6)}, "time_zone": {"UTC"}, "preview": {"1"}}
	if a := w.form(w.member, place+"/change", form); a.status != 200 || !strings.Contains(a.raw, "All can be reserved at the earliest start.") {
		t.Errorf("the form's preview: %d %s", a.status, a.raw)
	}
	form.Del("preview")
	if a := w.form(w.member, place+"/change", form); a.status != 303 {
		t.Errorf("the form: %d %s", a.status, a.raw)
	}
	if a := w.get(w.member, place); a.body["starts_at"] != at(6) || a.body["ends_at"] != at(8) {
		t.Errorf("moved by the form: %s", a.raw)
	}
	form.Set("ends_at", "soon")
	if a := w.form(w.member, place+"/change", form); a.status != 422 || !strings.Contains(a.raw, "must be a date and time such as") {
		t.Errorf("a wrong time: %d %s", a.status, a.raw)
	}
}

// The form reserves the GPU memory that is entered, as REST does, and its preview says how much that is; by default it is
// in proportion to the cores.
func TestReservedGPUMemory(t *testing.T) {
	w := newWorld(t)
	shown := ">" + models.FormatMiB(20480) + "<"
	if page := w.page(w.member, "/reservations/new?gpu_memory_mib=20+GiB"); !strings.Contains(page, `value="20 GiB"`) || !strings.Contains(page, shown) {
		t.Errorf("the form with an amount in its address: %s", page)
	}
	form := url.Values{"project_id": {id(w.project)}, "gpus": {"1"}, "cores": {"50"}, "gpu_memory_mib": {"20 GiB"}, "duration_minutes": {"60"}, "preview": {"1"}}
	if a := w.form(w.member, "/reservations", form); a.status != 200 || !strings.Contains(a.raw, shown) {
		t.Errorf("the preview: %d %s", a.status, a.raw)
	}
	form.Del("preview")
	form.Set("gpu_memory_mib", "much")
	if a := w.form(w.member, "/reservations", form); a.status != 422 || !strings.Contains(a.raw, "must be a size such as") {
		t.Errorf("no size: %d %s", a.status, a.raw)
	}
	form.Set("gpu_memory_mib", "20 GiB")
	w.form(w.member, "/reservations", form)
	form.Set("gpu_memory_mib", "")
	w.form(w.member, "/reservations", form)
	for id, want := range map[string]bool{"1": true, "2": false} {
		if a := w.get(w.member, "/reservations/"+id); a.status != 200 || (a.body["gpu_memory_mib"] == 20480.0) != want {
			t.Errorf("reservation %s: %d %s", id, a.status, a.raw)
		}
	}
}

// A preview over REST and on its page names the reservations that would be changed.
func TestPreviewOfMoves(t *testing.T) {
	w := newWorld(t)
	from := w.store.Now().UTC().Truncate(time.Minute).Add(2 * time.Hour)
	body := func(gpus, more string) string {
		return `{"project_id":` + id(w.project) + `,"gpus":` + gpus + `,"gpu_memory_mib":1000,"duration_minutes":60,"from":"` + from.Format(time.RFC3339) + `",` + more + `}`
	}
	place := "/reservations/" + id(w.create(w.member, "/reservations", body("2", `"cores":50,"class":"low","qos":"preemptible","accept_later":true`)))
	a := w.send(w.member, "POST", "/reservations/preview", body("1", `"cores":51`))
	for _, part := range []string{`"moves":1`, `"changes":[{"id":1,`, `"project":"vision"`, `"starts_at":"` + from.Add(time.Hour).Format(time.RFC3339) + `"`} {
		if !strings.Contains(a.raw, part) {
			t.Errorf("no %s in %d %s", part, a.status, a.raw)
		}
	}
	form := url.Values{"project_id": {id(w.project)}, "gpus": {"1"}, "cores": {"51"}, "gpu_memory_mib": {"1000"}, "duration_minutes": {"60"}, "from": {from.Format("2006-01-02T15:04")},
		"time_zone": {"UTC"}, "preview": {"1"}}
	if a := w.form(w.member, "/reservations", form); !strings.Contains(a.raw, `href="`+place+`"`) || strings.Contains(a.raw, "of others") {
		t.Errorf("the form: %d %s", a.status, a.raw)
	}
}

// A preview over REST and on its page names the reservations in the way.
func TestPreviewOfConflicts(t *testing.T) {
	w := newWorld(t)
	from := w.store.Now().UTC().Truncate(time.Minute).Add(2 * time.Hour)
	body := func(gpus string) string {
		return `{"project_id":` + id(w.project) + `,"gpus":` + gpus + `,"cores":50,"gpu_memory_mib":1000,"duration_minutes":60,"from":"` + from.Format(time.RFC3339) + `"}`
	}
	place := "/reservations/" + id(w.create(w.member, "/reservations", body("2")))
	in := strings.Replace(body("2"), `"cores":50`, `"cores":51`, 1)
	a := w.send(w.member, "POST", "/reservations/preview", in)
	for _, part := range []string{`"outcome":"refused"`, `"conflicts":[{"id":1,`, `"project":"vision"`, `"gpus":2`, `"earliest":"` + from.Add(time.Hour).Format(time.RFC3339)} {
		if !strings.Contains(a.raw, part) {
			t.Errorf("no %s in %d %s", part, a.status, a.raw)
		}
	}
	form := url.Values{"project_id": {id(w.project)}, "gpus": {"2"}, "cores": {"51"}, "gpu_memory_mib": {"1000"}, "duration_minutes": {"60"},
		"from": {from.Format("2006-01-02T15:04")}, "time_zone": {"UTC"}, "preview": {"1"}}
	if a := w.form(w.member, "/reservations", form); !strings.Contains(a.raw, `href="`+place+`"`) || strings.Contains(a.raw, "A reservation of others") {
		t.Errorf("the form: %d %s", a.status, a.raw)
	}
}

// The calendar shows what is reserved, over REST and on its page.
func TestCalendarOfReservations(t *testing.T) {
	w := newWorld(t)
	place := "/reservations/" + id(w.create(w.member, "/reservations", `{"project_id":`+id(w.project)+`,"gpus":1,"cores":50,"duration_minutes":60}`))
	at := "/reservations/calendar?view=week&project_id=" + id(w.project)
	for reserved, who := range map[string]string{"mine": w.member, "project": w.member} {
		if a := w.get(who, at+"&reserved="+reserved); a.status != 200 || !strings.Contains(a.raw, `"reservations":[0,`) && !strings.Contains(a.raw, `"reservations":[1,`) ||
			strings.Contains(a.raw, `"available"`) {
			t.Errorf("%s: %d %s", reserved, a.status, a.raw)
		}
		if page := w.page(who, at+"&reserved="+reserved); !strings.Contains(page, `href="`+place+`"`) {
			t.Errorf("%s: %s", reserved, page)
		}
	}
	if a := w.get(w.manager, at+"&reserved=mine"); a.status != 200 || strings.Contains(a.raw, `"reservations"`) {
		t.Errorf("of others: %d %s", a.status, a.raw)
	}
	if a := w.send(w.member, "GET", at+"&reserved=all", ""); a.status != 422 {
		t.Errorf("of all: %d %s", a.status, a.raw)
	}
	root := w.as("root@example.org") // who is in no project
	root.shows(root.page(200, "GET", "/reservations/calendar"), `<table class="calendar">`, "!/reservations/new")
}
