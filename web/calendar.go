package web

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"time"

	"weir/models"
)

// CalendarView shows what a project can reserve in a day, week or month.
type CalendarView struct {
	ProjectID  int64 // 0: the reader sees no project
	CanReserve bool  // the reader, in it
	Projects   []Option
	View       string // day, week, month
	TimeZone   string
	GPUModel   string
	Reserved   string      // what is reserved is shown: project, mine; empty: what is available
	Slots      []time.Time // in the time zone: the starts, and at last the end
	Devices    []CalendarDevice
	After      int64 // ID of the last device, if there are more; else 0
	Now        time.Time
}

// CalendarDevice is a row of the calendar; its GPU cores are those of the device.
type CalendarDevice struct {
	models.GrantView
	Available []int64 // GPU cores by slot; -1: unknown

	Reserved, Reservations []int64 // in a calendar of reservations instead: GPU cores, and the first reservation or 0
}

// slot is a cell of the calendar.
type slot struct {
	device      CalendarDevice
	from, until time.Time
	cores       int64 // -1: unknown
	reservation int64 // of a calendar of reservations; else 0
}

// fields of a form of local times, such as 2026-03-12T09:00.
const localMinutes = "2006-01-02T15:04"

func (v CalendarView) end() time.Time { return v.Slots[len(v.Slots)-1] }

// title is the span in words that every language shares.
func (v CalendarView) title() string {
	first := v.Slots[0].Format(time.DateOnly)
	switch v.View {
	case "day":
		return first
	case "week":
		return first + " – " + v.end().Add(-1).Format(time.DateOnly)
	default:
		return v.Slots[0].Format("2006-01")
	}
}

// path is the address of another part of the calendar.
func (v CalendarView) path(view string, at time.Time, after int64) string {
	q := url.Values{"project_id": {number(v.ProjectID)}, "view": {view}, "date": {at.Format(time.DateOnly)}}
	if v.TimeZone != "" {
		q.Set("time_zone", v.TimeZone)
	}
	if v.GPUModel != "" {
		q.Set("gpu_model", v.GPUModel)
	}
	if v.Reserved != "" {
		q.Set("reserved", v.Reserved)
	}
	if after != 0 {
		q.Set("after", number(after))
	}
	return "/reservations/calendar?" + q.Encode()
}

// around is a day in the span: today, if that is in it.
func (v CalendarView) around() time.Time {
	if now := v.Now.In(v.Slots[0].Location()); !now.Before(v.Slots[0]) && now.Before(v.end()) {
		return now
	}
	return v.Slots[0]
}

func (v CalendarView) next() string {
	if v.After == 0 {
		return ""
	}
	return v.path(v.View, v.Slots[0], v.After)
}

// earlier is the part of the calendar before this one.
func (v CalendarView) earlier() string { return v.path(v.View, v.Slots[0].Add(-1), 0) }

func (v CalendarView) form() Form {
	return Form{Values: map[string]string{"project_id": number(v.ProjectID), "gpu_model": v.GPUModel, "reserved": v.Reserved}}
}

// days are the dates over the quarters of a week.
func (v CalendarView) days() (days []string) {
	for i := 0; i < len(v.Slots)-1; i += 4 {
		days = append(days, v.Slots[i].Format("01-02"))
	}
	return days
}

// column is the head of a slot.
func (v CalendarView) column(i int) string {
	if v.View == "month" {
		return v.Slots[i].Format("02")
	}
	return v.Slots[i].Format("15")
}

func (v CalendarView) slots(d CalendarDevice) (list []slot) {
	for i, cores := range d.Available {
		list = append(list, slot{d, v.Slots[i], v.Slots[i+1], cores, 0})
	}
	for i, cores := range d.Reserved {
		list = append(list, slot{d, v.Slots[i], v.Slots[i+1], cores, d.Reservations[i]})
	}
	return list
}

// reservePath is the form for a slot, from now if it has begun.
func (v CalendarView) reservePath(s slot) string {
	q := url.Values{"project_id": {number(v.ProjectID)}, "cores": {number(s.cores)}, "gpu_model": {s.device.Model}, "time_zone": {v.TimeZone},
		"duration_minutes": {strconv.Itoa(v.minutes(s))}}
	if s.from.After(v.Now) { // else until when it lasts depends on when the form is sent
		q.Set("from", s.from.Format(localMinutes))
		q.Set("until", s.until.Format(localMinutes))
	}
	return "/reservations/new?" + q.Encode()
}

// minutes is what is left of a slot.
func (v CalendarView) minutes(s slot) int {
	from := s.from
	if v.Now.After(from) {
		from = v.Now
	}
	return int(s.until.Sub(from) / time.Minute)
}

// level is the shade of a slot: l0 has nothing available, l4 all.
func (s slot) level() string {
	switch {
	case s.cores < 0:
		return "over"
	case s.cores >= s.device.Cores:
		return "l4"
	case s.cores == 0:
		return "l0"
	default:
		return "l" + number(1+min(2, s.cores*3/s.device.Cores))
	}
}

// calendarZone names the time zone of a calendar.
func calendarZone(name string) string { return cmp.Or(name, "UTC") }

func (v CalendarView) subtitle(ctx context.Context) string {
	if v.Reserved != "" {
		return T(ctx, "GPU cores that are reserved.")
	}
	return T(ctx, "GPU cores that your project can reserve.")
}

// caption is what the numbers of the calendar are.
func (v CalendarView) caption(ctx context.Context) string {
	if v.Reserved != "" {
		return T(ctx, "Reserved GPU cores")
	}
	return T(ctx, "Available GPU cores")
}

// shows are what a calendar can show.
func (v CalendarView) shows(ctx context.Context) []Option {
	return []Option{{Label: T(ctx, "What can be reserved")}, {Value: "project", Label: T(ctx, "Reserved by the project")},
		{Value: "mine", Label: T(ctx, "Reserved by me")}}
}

func (s slot) label(ctx context.Context) string {
	if s.reservation != 0 {
		return T(ctx, "%s · GPU %s, %s: %s GPU cores reserved", s.device.ProviderName, number(s.device.Number),
			s.from.Format("2006-01-02 15:04"), number(s.cores))
	}
	return T(ctx, "%s · GPU %s, %s: %s GPU cores available", s.device.ProviderName, number(s.device.Number),
		s.from.Format("2006-01-02 15:04"), number(s.cores))
}
