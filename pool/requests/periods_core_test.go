package requests

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDueNotice(t *testing.T) {
	end := time.Date(2030, 3, 1, 18, 0, 0, 0, time.UTC)
	days := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name string
		left time.Duration // until the end
		told *int64
		days int64
		due  bool
	}{
		{"long before", 7*oneDay + 1, nil, 0, false},
		{"7 days", 7 * oneDay, nil, 7, true},
		{"7 days, told", 7 * oneDay, days(7), 0, false},
		{"between", 3 * oneDay, days(7), 0, false},
		{"between, first seen", 3 * oneDay, nil, 7, true},
		{"just before the last", oneDay + 1, days(7), 0, false},
		{"1 day", oneDay, days(7), 1, true},
		{"1 day, first seen", time.Hour, nil, 1, true},
		{"1 day, told", 1, days(1), 0, false},
		{"the end", 0, days(1), 0, true},
		{"the end, first seen", 0, nil, 0, true},
		{"after it", -5 * oneDay, days(7), 0, true},
		{"after it, told", -5 * oneDay, days(0), 0, false},
		{"long after", -30 * oneDay, nil, 0, false},
		{"the clock went back", 3 * oneDay, days(1), 0, false},
		{"the clock went far back", 3 * oneDay, days(0), 0, false},
	} {
		if got, due := dueNotification(end.Add(-c.left), end, c.told); due != c.due || due && got != c.days {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, got, due, c.days, c.due)
		}
	}
}

// However often and whenever somebody looks, each notice is given once at
// most, the nearer after the farther, never early; and who looks in every part
// of the time gives all.
func TestNoticesAreGivenOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		end := time.Date(2030, 3, 1, 18, 0, 0, 0, time.UTC)
		now := end.Add(-time.Duration(rapid.Int64Range(0, 20*24*60).Draw(t, "minutes before")) * time.Minute)
		var told *int64
		looked := map[int64]bool{}
		given := map[int64]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "looks") {
			left := end.Sub(now)
			for _, days := range []int64{7, 1, 0} {
				if left <= time.Duration(days)*oneDay && (days == 0 || left > time.Duration(days/7)*oneDay) {
					looked[days] = true
				}
			}
			days, due := dueNotification(now, end, told)
			if due {
				if given[days] || told != nil && days >= *told || left > time.Duration(days)*oneDay {
					t.Fatalf("%d days ahead, %s before the end, after %v", days, left, told)
				}
				given[days], told = true, &days
			}
			if again, due := dueNotification(now, end, told); due {
				t.Fatalf("at once again: %d", again)
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, 2*24*60).Draw(t, "minutes")) * time.Minute)
			if end.Sub(now) <= -outdated {
				break
			}
		}
		for days := range looked {
			if !given[days] {
				t.Fatalf("somebody looked %d days ahead, and nobody was told", days)
			}
		}
	})
}
