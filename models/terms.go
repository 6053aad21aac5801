package models

import (
	"slices"
	"strconv"
	"sync"
	"time"
)

// Terms are set by a provider's owner: how much, which devices, when and to whom
// to lend. The zero Terms lend everything to everybody, always.
type Terms struct {
	Cores        int64    `json:"cores,omitempty"`         // of each device; 0 lends all 100
	Devices      []int64  `json:"devices,omitempty"`       // ids; none: every device
	Projects     []int64  `json:"projects,omitempty"`      // ids; none: every project
	Hours        []Window `json:"hours,omitempty"`         // none: always
	TimeZone     string   `json:"time_zone,omitempty"`     // of the hours, such as Asia/Shanghai; empty: UTC
	GraceMinutes int64    `json:"grace_minutes,omitempty"` // of warning for holders before the hours end
}

// Window is a span of hours on days of the week. If To is not after From it ends
// on the next day.
type Window struct {
	Days []int  `json:"days"` // 0 is Sunday
	From string `json:"from"` // 15:04
	To   string `json:"to"`
}

const maxGraceMinutes = 7 * 24 * 60

// Check adds a problem for every invalid value.
func (t Terms) Check(p *Problems) {
	if t.Cores < 0 || t.Cores > 100 {
		p.Add("cores", "must be from 0 to %d; 0 lends all", 100)
	}
	if t.GraceMinutes < 0 || t.GraceMinutes > maxGraceMinutes {
		p.Add("grace_minutes", "must be from 0 to %d minutes", maxGraceMinutes)
	}
	CheckTimeZone("time_zone", t.TimeZone, p)
	if len(t.Hours) > 21 || len(t.Devices) > 1000 || len(t.Projects) > 1000 {
		p.Add("hours", "has too many entries")
	}
	for i, w := range t.Hours {
		w.check(p, "hours["+strconv.Itoa(i)+"]")
	}
}

func (w Window) check(p *Problems, field string) {
	if _, err := time.Parse("15:04", w.From); err != nil {
		p.Add(field+".from", "must be a time of day such as 09:00")
	}
	if _, err := time.Parse("15:04", w.To); err != nil {
		p.Add(field+".to", "must be a time of day such as 09:00")
	}
	if len(w.Days) == 0 || slices.ContainsFunc(w.Days, func(d int) bool { return d < 0 || d > 6 }) {
		p.Add(field+".days", "must include at least one day of the week, from 0 (Sunday) to 6 (Saturday)")
	}
}

// Lends reports whether the terms lend a device to a project, regardless of the
// hours.
func (t Terms) Lends(device, project int64) bool {
	return (len(t.Devices) == 0 || slices.Contains(t.Devices, device)) &&
		(len(t.Projects) == 0 || slices.Contains(t.Projects, project))
}

// Admits reports whether the terms lend a project so many cores of a device for a whole span.
func (t Terms) Admits(device, project, cores int64, from, until time.Time) bool {
	open, end := t.Open(from)
	return t.Lends(device, project) && (t.Cores == 0 || cores <= t.Cores) && open && (end == nil || !end.Before(until))
}

// Open reports whether a time is in the hours, and when that next changes; until
// is nil when it never does.
func (t Terms) Open(at time.Time) (open bool, until *time.Time) {
	if len(t.Hours) == 0 {
		return true, nil
	}
	spans := t.spans(at)
	end := at
	for _, s := range spans { // sorted by beginning, so that touching ones join
		if !s[0].After(end) && s[1].After(end) {
			end = s[1]
		}
	}
	if end.After(at) {
		if end.Sub(at) > 7*24*time.Hour {
			return true, nil
		}
		return true, &end
	}
	for _, s := range spans {
		if s[0].After(at) {
			return false, &s[0]
		}
	}
	return false, nil
}

// spans are the windows' occurrences from the day before a time until more than
// a week after it, in order.
func (t Terms) spans(at time.Time) (spans [][2]time.Time) {
	zone := TimeZone(t.TimeZone)
	local := at.In(zone)
	for day := -1; day <= 9; day++ {
		date := time.Date(local.Year(), local.Month(), local.Day()+day, 0, 0, 0, 0, zone)
		for _, w := range t.Hours {
			if slices.Contains(w.Days, int(date.Weekday())) {
				spans = append(spans, w.on(date))
			}
		}
	}
	slices.SortFunc(spans, func(a, b [2]time.Time) int { return a[0].Compare(b[0]) })
	return spans
}

var zones sync.Map // by name; loading one reads a file

// TimeZone returns a time zone that was checked before; UTC when it is empty or unknown.
func TimeZone(name string) *time.Location {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		zone = time.UTC
	}
	zones.Store(name, zone)
	return zone
}

// on is the window's occurrence that begins on a date. Hours are local time, so
// a span may be an hour longer or shorter when clocks change.
func (w Window) on(date time.Time) [2]time.Time {
	at := func(text string, plus int) time.Time {
		clock, _ := time.Parse("15:04", text)
		return time.Date(date.Year(), date.Month(), date.Day()+plus, clock.Hour(), clock.Minute(), 0, 0, date.Location())
	}
	from, to := at(w.From, 0), at(w.To, 0)
	if !to.After(from) {
		to = at(w.To, 1)
	}
	return [2]time.Time{from.UTC(), to.UTC()}
}
