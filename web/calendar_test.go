package web

import (
	"strings"
	"testing"
	"time"
)

// The day before one whose day before has no midnight is that day, not the one before it.
func TestCalendarDaysWithoutMidnight(t *testing.T) {
	zone, err := time.LoadLocation("America/Sao_Paulo")
	if err != nil {
		t.Fatal(err)
	}
	monday := time.Date(2018, 11, 5, 0, 0, 0, 0, zone)
	v := CalendarView{View: "week", Slots: []time.Time{monday, monday.AddDate(0, 0, 7)}}
	if before := v.earlier(); !strings.Contains(before, "date=2018-11-04") {
		t.Errorf("before Monday, November 5: %s", before)
	}
	v.Slots = []time.Time{time.Date(2018, 10, 29, 0, 0, 0, 0, zone), monday}
	if v.title() != "2018-10-29 – 2018-11-04" {
		t.Errorf("the week is called %s", v.title())
	}
}
