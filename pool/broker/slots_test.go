package broker

import (
	"testing"
	"time"

	"weir/pool/timeline"
)

func TestSlots(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		view, at, from, until string
		n                     int
	}{
		{ViewDay, "2026-11-23", "2026-11-23T00:00:00+01:00", "2026-11-24T00:00:00+01:00", 24},
		{ViewDay, "2026-10-25", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", 25},
		{ViewDay, "2026-03-29", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00", 23},
		{ViewWeek, "2026-11-23", "2026-11-23T00:00:00+01:00", "2026-11-30T00:00:00+01:00", 28},
		{ViewWeek, "2026-11-29", "2026-11-23T00:00:00+01:00", "2026-11-30T00:00:00+01:00", 28},
		{ViewMonth, "2026-02-28", "2026-02-01T00:00:00+01:00", "2026-03-01T00:00:00+01:00", 28},
		{ViewMonth, "2026-12-31", "2026-12-01T00:00:00+01:00", "2027-01-01T00:00:00+01:00", 31},
	} {
		at, err := time.ParseInLocation(time.DateOnly, c.at, berlin)
		if err != nil {
			t.Fatal(err)
		}
		got := slots(c.view, at.Add(13*time.Hour))
		if n := len(got) - 1; n != c.n || got[0].Format(time.RFC3339) != c.from || got[n].Format(time.RFC3339) != c.until {
			t.Errorf("%s of %s: %d slots from %s until %s", c.view, c.at, n, got[0], got[n])
		}
		for i := range c.n {
			if !got[i].Before(got[i+1]) {
				t.Errorf("%s of %s: %s is before %s", c.view, c.at, got[i+1], got[i])
			}
		}
	}
}

// A day begins with its first instant where the clocks change at midnight, and a day that a
// zone has left out has no slots.
func TestDaysWithoutMidnight(t *testing.T) {
	for _, c := range []struct {
		zone, view, date, from, until string
		n                             int
	}{
		{"America/Sao_Paulo", ViewDay, "2018-11-03", "2018-11-03T00:00:00-03:00", "2018-11-04T01:00:00-02:00", 24},
		{"America/Sao_Paulo", ViewDay, "2018-11-04", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00", 23},
		{"America/Sao_Paulo", ViewDay, "2018-02-17", "2018-02-17T00:00:00-02:00", "2018-02-18T00:00:00-03:00", 25},
		{"America/Sao_Paulo", ViewWeek, "2018-11-04", "2018-10-29T00:00:00-03:00", "2018-11-05T00:00:00-02:00", 28},
		{"America/Sao_Paulo", ViewMonth, "2018-11-04", "2018-11-01T00:00:00-03:00", "2018-12-01T00:00:00-02:00", 30},
		{"Africa/Cairo", ViewDay, "2023-04-28", "2023-04-28T01:00:00+03:00", "2023-04-29T00:00:00+03:00", 23},
		{"Africa/Cairo", ViewWeek, "2023-04-28", "2023-04-24T00:00:00+02:00", "2023-05-01T00:00:00+03:00", 28},
		{"Africa/Cairo", ViewMonth, "2023-04-28", "2023-04-01T00:00:00+02:00", "2023-05-01T00:00:00+03:00", 30},
		{"America/Asuncion", ViewMonth, "2017-09-05", "2017-09-01T00:00:00-04:00", "2017-10-01T01:00:00-03:00", 30},
		{"America/Asuncion", ViewMonth, "2017-10-05", "2017-10-01T01:00:00-03:00", "2017-11-01T00:00:00-03:00", 31},
		{"America/Havana", ViewDay, "2026-11-01", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00", 25},
		{"Pacific/Apia", ViewDay, "2011-12-30", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00", 24},
		{"Pacific/Apia", ViewWeek, "2011-12-29", "2011-12-26T00:00:00-10:00", "2012-01-02T00:00:00+14:00", 24},
	} {
		at, err := CalendarInput{View: c.view, Date: c.date, TimeZone: c.zone}.when(time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		got := slots(c.view, at)
		if n := len(got) - 1; n != c.n || got[0].Format(time.RFC3339) != c.from || got[n].Format(time.RFC3339) != c.until {
			t.Errorf("%s of %s in %s: %d slots from %s until %s", c.view, c.date, c.zone, n, got[0], got[n])
		}
		for i := range len(got) - 1 {
			if !got[i].Before(got[i+1]) {
				t.Errorf("%s of %s in %s: %s is before %s", c.view, c.date, c.zone, got[i+1], got[i])
			}
		}
	}
}

// What is available in a slot is available at every moment of it that is known.
func TestAvailable(t *testing.T) {
	start := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	var use timeline.Timeline
	at := func(hours float64) time.Time { return start.Add(time.Duration(hours * float64(time.Hour))) }
	take := func(from, until float64, cores, memory int64) {
		use.Add(timeline.Span{From: at(from).UnixMicro(), Until: at(until).UnixMicro()}, timeline.Amount{Cores: cores, MemoryMiB: memory})
	}
	take(0, 2, 30, 0)
	take(1.5, 1.6, 50, 0)
	take(2.5, 3, 10, 75) // all memory but a quarter
	take(3, 4, 120, 0)   // more than it has, once the owner has shrunk it
	got := available(&use, timeline.Amount{Cores: 100, MemoryMiB: 100}, []time.Time{at(-1), at(0), at(1), at(2), at(3), at(4), at(5), at(6)}, at(0.5), at(5))
	for i, want := range []int64{Unknown, 70, 20, 25, 0, 100, Unknown} {
		if got[i] != want {
			t.Errorf("slot %d: %d, want %d", i, got[i], want)
		}
	}
}
