package models

import (
	"testing"
	"time"
)

func TestLastDay(t *testing.T) {
	for _, c := range []struct{ end, last, moment string }{
		{"2027-02-01T00:00:00Z", "2027-01-31", "2027-01-31"},
		{"2027-02-01T00:00:01Z", "2027-02-01", "2027-02-01 00:00 UTC"},
		{"2027-02-01T15:30:00+08:00", "2027-02-01", "2027-02-01 07:30 UTC"},
		{"2027-02-01T08:00:00+08:00", "2027-01-31", "2027-01-31"},
	} {
		end, err := time.Parse(time.RFC3339, c.end)
		if err != nil {
			t.Fatal(err)
		}
		if got := LastDay(end).Format(time.DateOnly); got != c.last {
			t.Errorf("the last day before %s is %s, want %s", c.end, got, c.last)
		}
		if got := EndMoment(end).String(); got != c.moment {
			t.Errorf("%s is shown as %s, want %s", c.end, got, c.moment)
		}
		if after := AfterDay(LastDay(end)); after.Before(end) || !LastDay(after).Equal(LastDay(end)) {
			t.Errorf("after the last day before %s comes %s", c.end, after)
		}
	}
}
