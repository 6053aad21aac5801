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

// What is available in a slot is available at every moment of it that is known.
func TestAvailable(t *testing.T) {
	start := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	var use timeline.Timeline
	at := func(hours float64) time.Time { return start.Add(time.Duration(hours * float64(time.Hour))) }
	take := func(from, until float64, cores int64) {
		use.Add(timeline.Span{From: at(from).UnixMicro(), Until: at(until).UnixMicro()}, timeline.Amount{Cores: cores})
	}
	take(0, 2, 30)
	take(1.5, 1.6, 50)
	take(3, 4, 120) // more than it has, once the owner has shrunk it
	got := available(&use, 100, []time.Time{at(-1), at(0), at(1), at(2), at(3), at(4), at(5), at(6)}, at(0.5), at(5))
	for i, want := range []int64{Unknown, 70, 20, 100, 0, 100, Unknown} {
		if got[i] != want {
			t.Errorf("slot %d: %d, want %d", i, got[i], want)
		}
	}
}
