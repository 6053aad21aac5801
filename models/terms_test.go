package models_test

import (
	"testing"
	"time"

	"weir/models"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04 MST", text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UTC()
}

func TestTermsOpen(t *testing.T) {
	weekdays, everyDay := []int{1, 2, 3, 4, 5}, []int{0, 1, 2, 3, 4, 5, 6}
	nights := models.Terms{Hours: []models.Window{{Days: weekdays, From: "20:00", To: "08:00"}}}
	berlin := models.Terms{TimeZone: "Europe/Berlin", Hours: []models.Window{{Days: everyDay, From: "01:00", To: "05:00"}}}
	touching := models.Terms{Hours: []models.Window{{Days: []int{6}, From: "12:00", To: "00:00"}, {Days: []int{0}, From: "00:00", To: "06:00"}}}
	always := models.Terms{Hours: []models.Window{{Days: everyDay, From: "00:00", To: "00:00"}}}
	for name, c := range map[string]struct {
		terms models.Terms
		at    string
		open  bool
		until string
	}{
		"no hours":               {models.Terms{}, "2026-11-20 12:00 UTC", true, ""},
		"before the night":       {nights, "2026-11-20 19:59 UTC", false, "2026-11-20 20:00 UTC"},
		"night begins":           {nights, "2026-11-20 20:00 UTC", true, "2026-11-21 08:00 UTC"},
		"after midnight":         {nights, "2026-11-21 07:59 UTC", true, "2026-11-21 08:00 UTC"},
		"night over":             {nights, "2026-11-21 08:00 UTC", false, "2026-11-23 20:00 UTC"},
		"another zone":           {berlin, "2026-11-20 00:30 UTC", true, "2026-11-20 04:00 UTC"},
		"summer there":           {berlin, "2026-07-20 00:30 UTC", true, "2026-07-20 03:00 UTC"},
		"clocks go back":         {berlin, "2026-10-25 00:30 UTC", true, "2026-10-25 04:00 UTC"},
		"two windows in a row":   {touching, "2026-11-21 13:00 UTC", true, "2026-11-22 06:00 UTC"},
		"windows without a gap":  {always, "2026-11-21 13:00 UTC", true, ""},
		"a window of one day":    {models.Terms{Hours: []models.Window{{Days: []int{3}, From: "09:00", To: "10:00"}}}, "2026-11-25 10:00 UTC", false, "2026-12-02 09:00 UTC"},
		"a window that is empty": {models.Terms{Hours: []models.Window{{From: "09:00", To: "10:00"}}}, "2026-11-25 09:30 UTC", false, ""},
	} {
		open, until := c.terms.Open(at(t, c.at))
		got := ""
		if until != nil {
			got = until.UTC().Format("2006-01-02 15:04 MST")
		}
		if open != c.open || got != c.until {
			t.Errorf("%s: open %v until %q, want %v until %q", name, open, got, c.open, c.until)
		}
	}
}

func TestTermsLend(t *testing.T) {
	for _, c := range []struct {
		terms           models.Terms
		device, project int64
		want            bool
	}{
		{models.Terms{}, 1, 1, true},
		{models.Terms{Devices: []int64{1}}, 1, 9, true},
		{models.Terms{Devices: []int64{1}}, 2, 9, false},
		{models.Terms{Projects: []int64{7}}, 2, 7, true},
		{models.Terms{Projects: []int64{7}}, 2, 8, false},
		{models.Terms{Devices: []int64{2}, Projects: []int64{7}}, 2, 8, false},
	} {
		if got := c.terms.Lends(c.device, c.project); got != c.want {
			t.Errorf("%+v lends %d to %d: %v", c.terms, c.device, c.project, got)
		}
	}
}

func TestTermsCheck(t *testing.T) {
	window := models.Window{Days: []int{0, 6}, From: "08:00", To: "20:00"}
	for field, terms := range map[string]models.Terms{
		"cores":         {Cores: 101},
		"grace_minutes": {GraceMinutes: -1},
		"time_zone":     {TimeZone: "Mars/Olympus"},
		"hours[1].days": {Hours: []models.Window{window, {From: "08:00", To: "09:00"}}},
		"hours[0].from": {Hours: []models.Window{{Days: []int{1}, From: "8 o'clock", To: "09:00"}}},
		"hours[0].to":   {Hours: []models.Window{{Days: []int{1}, From: "08:00", To: "24:01"}}},
	} {
		var p models.Problems
		terms.Check(&p)
		if len(p) != 1 || p[0].Name != field {
			t.Errorf("%s: %+v", field, p)
		}
	}
	var p models.Problems
	models.Terms{Cores: 50, Hours: []models.Window{window}, TimeZone: "Asia/Shanghai", GraceMinutes: 30}.Check(&p)
	if len(p) > 0 {
		t.Errorf("good terms: %+v", p)
	}
}
