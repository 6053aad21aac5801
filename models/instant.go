package models

import "time"

// Instant is a time among the arguments of a Text: in UTC, in an email in its reader's time
// zone. A date is the same everywhere.
type Instant struct {
	At   time.Time
	Date bool
}

// Moment is a time in a Text, midnight in UTC as a date.
func Moment(t time.Time) Instant {
	t = t.UTC()
	return Instant{t, t.Equal(t.Truncate(24 * time.Hour))}
}

// String is the time in UTC.
func (i Instant) String() string { return i.in(time.UTC) }

func (i Instant) in(zone *time.Location) string {
	switch {
	case i.Date:
		return i.At.UTC().Format(time.DateOnly)
	case zone == time.UTC:
		return i.At.UTC().Format("2006-01-02 15:04 UTC")
	}
	return i.At.In(zone).Format("2006-01-02 15:04 UTC-07:00")
}
