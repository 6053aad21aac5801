package broker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sort"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

// CalendarInput selects a part of the calendar of a project.
type CalendarInput struct {
	ProjectID int64
	GPUModel  string // empty: any
	View      string // day, week or month
	Date      string // a day in it, such as 2026-03-12; empty: today
	TimeZone  string // of the days, such as Europe/Berlin; empty: UTC
	Reserved  string // what is reserved is shown: project or mine; empty: what is available
	After     int64  // ID of the last device of the page before
	Limit     int    // devices of a page
}

// The views of the calendar.
const (
	ViewDay   = "day"
	ViewWeek  = "week"
	ViewMonth = "month"
)

// What a calendar shows of reservations.
const (
	ReservedByProject = "project" // as far as the actor may see them
	ReservedByMe      = "mine"
)

// Calendar is what a project can reserve, or has reserved, in a day, week or month.
type Calendar struct {
	Slots   []time.Time // the starts, and at last the end
	Devices []CalendarDevice
	More    bool // there are more devices
}

// CalendarDevice is a device of the calendar.
type CalendarDevice struct {
	models.GrantView         // its name; its amounts are those of the device
	Available        []int64 // GPU cores at every moment of each slot; Unknown for what is over or too far ahead

	// In a calendar of reservations instead: GPU cores in each slot at most, and the first reservation in it, or 0.
	Reserved, Reservations []int64
}

// Unknown is what is available in the past, and where the pool is not known yet.
const Unknown = -1

// when is the checked moment and view that a calendar is asked for.
func (in CalendarInput) when(now time.Time) (at time.Time, err error) {
	var p models.Problems
	zone := models.CheckTimeZone("time_zone", in.TimeZone, &p)
	at = now.In(zone)
	if in.Date != "" {
		day, err := time.Parse(time.DateOnly, in.Date)
		if err != nil || day.Year() < 2000 || day.Year() > 9000 {
			p.Add("date", "must be a date such as 2027-01-31")
		}
		at = firstInstant(day, zone)
	}
	if in.View != ViewDay && in.View != ViewWeek && in.View != ViewMonth {
		p.Add("view", "must be day, week or month")
	}
	if in.Reserved != "" && in.Reserved != ReservedByProject && in.Reserved != ReservedByMe {
		p.Add("reserved", "must be project or mine")
	}
	return at, p.Err()
}

// firstInstant is when a day, given in UTC, begins in a time zone: not always at midnight,
// because clocks may change then. For a day that the zone has left out, it is when the next begins.
func firstInstant(day time.Time, zone *time.Location) time.Time {
	const farthest = 26 * time.Hour // from UTC
	earliest := day.Add(-farthest)
	n := sort.Search(int(2*farthest/time.Second), func(n int) bool {
		year, month, d := earliest.Add(time.Duration(n) * time.Second).In(zone).Date()
		return !time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Before(day)
	})
	return earliest.Add(time.Duration(n) * time.Second).In(zone)
}

// slots are the boundaries of the parts of the day, week or month around a moment, in its
// time zone: hours, quarters of days, or days.
func slots(view string, at time.Time) (list []time.Time) {
	today, zone := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC), at.Location()
	first, last := today, today.AddDate(0, 0, 1)
	switch view {
	case ViewWeek:
		first = today.AddDate(0, 0, -(int(today.Weekday())+6)%7)
		last = first.AddDate(0, 0, 7)
	case ViewMonth:
		first = today.AddDate(0, 0, 1-today.Day())
		last = first.AddDate(0, 1, 0)
	}
	for day := first; day.Before(last); day = day.AddDate(0, 0, 1) {
		from, until := firstInstant(day, zone), firstInstant(day.AddDate(0, 0, 1), zone)
		if from.Before(until) { // the zone has this day
			list = append(list, slotsOfDay(view, day, from, until)...)
		}
	}
	return append(list, firstInstant(last, zone))
}

// slotsOfDay are the starts of the slots of a day, which has 23 or 25 hours when the clocks
// change.
func slotsOfDay(view string, day, from, until time.Time) []time.Time {
	list := []time.Time{from}
	switch view {
	case ViewDay:
		for t := from.Add(time.Hour); t.Before(until); t = t.Add(time.Hour) {
			list = append(list, t)
		}
	case ViewWeek:
		for hour := 6; hour < 24; hour += 6 {
			list = append(list, time.Date(day.Year(), day.Month(), day.Day(), hour, 0, 0, 0, from.Location()))
		}
	}
	return list
}

// Calendar shows what a project can reserve over a day, week or month.
func (s *Service) Calendar(ctx context.Context, actor policies.Actor, in CalendarInput) (c Calendar, err error) {
	if err := s.access.Check(actor, in.ProjectID, policies.ProjectRead); err != nil {
		return c, err
	}
	at, err := in.when(s.store.Now())
	if err != nil {
		return c, err
	}
	c.Slots = slots(in.View, at)
	return c, s.store.Snapshot(ctx, func(q *store.Queries) error {
		if in.Reserved != "" {
			return s.fillReserved(q, &c, actor, in)
		}
		demand := models.Demand{GPUs: 1, Cores: 1, GPUModel: in.GPUModel}
		_, devices, taken, err := s.pool.Reservable(q, in.ProjectID, demand, models.AssumedReservations{})
		if err != nil {
			return err
		}
		return s.fill(q, &c, in, devices, taken)
	})
}

// fill adds a page of devices to a calendar.
func (s *Service) fill(q *store.Queries, c *Calendar, in CalendarInput, devices []timeline.Device, taken []timeline.Grant) error {
	slices.SortFunc(devices, func(a, b timeline.Device) int { return cmp.Compare(a.ID, b.ID) })
	devices = slices.DeleteFunc(devices, func(d timeline.Device) bool { return d.ID <= in.After })
	if c.More = len(devices) > in.Limit; c.More {
		devices = devices[:in.Limit]
	}
	uses := map[int64]*timeline.Timeline{}
	names := make([]models.GrantView, len(devices))
	for i, d := range devices {
		uses[d.ID] = &timeline.Timeline{}
		names[i].ReservationGrant = models.ReservationGrant{DeviceID: d.ID, Cores: d.Capacity.Cores, MemoryMiB: d.Capacity.MemoryMiB}
	}
	for _, g := range taken {
		if use := uses[g.Device]; use != nil {
			use.Add(g.Span, g.Amount)
		}
	}
	if err := q.NameGrants(names); err != nil {
		return err
	}
	now := q.Now()
	for _, d := range names {
		c.Devices = append(c.Devices, CalendarDevice{GrantView: d,
			Available: available(uses[d.DeviceID], amountOf(d.ReservationGrant), c.Slots, now, now.Add(s.rules.MaxAhead))})
	}
	return nil
}

// fillReserved adds a page of the devices of which something is reserved in the calendar and has not ended.
func (s *Service) fillReserved(q *store.Queries, c *Calendar, actor policies.Actor, in CalendarInput) error {
	all, err := q.ReservedBy(in.ProjectID)
	if err != nil {
		return err
	}
	span := models.ReservationGrant{StartsAt: c.Slots[0], EndsAt: c.Slots[len(c.Slots)-1]}
	of := map[int64][]models.ReservedView{}
	for _, g := range all {
		if in.Reserved == ReservedByMe && g.UserID != actor.User.ID || !g.Overlaps(span) ||
			!s.access.MayOwned(actor, g.UserID, g.ProjectID, policies.WorkspaceRead) {
			continue
		}
		of[g.DeviceID] = append(of[g.DeviceID], g)
	}
	devices, err := q.WholeDevices(slices.Collect(maps.Keys(of)))
	if err != nil {
		return err
	}
	devices = slices.DeleteFunc(devices, func(d models.GrantView) bool {
		return d.DeviceID <= in.After || !s.pool.MatchesModel(d.Model, in.GPUModel)
	})
	if c.More = len(devices) > in.Limit; c.More {
		devices = devices[:in.Limit]
	}
	for _, d := range devices {
		cores, first := reserved(of[d.DeviceID], c.Slots)
		c.Devices = append(c.Devices, CalendarDevice{GrantView: d, Reserved: cores, Reservations: first})
	}
	return nil
}

// reserved is what grants have of a device in each slot at most, and the reservation of the first of them.
func reserved(grants []models.ReservedView, slots []time.Time) (cores, first []int64) {
	var use timeline.Timeline
	for _, g := range grants {
		use.Add(spanOf(g.ReservationGrant), amountOf(g.ReservationGrant))
	}
	cores, first = make([]int64, len(slots)-1), make([]int64, len(slots)-1)
	for i := range cores {
		slot := models.ReservationGrant{StartsAt: slots[i], EndsAt: slots[i+1]}
		cores[i] = use.Max(spanOf(slot)).Cores
		var from time.Time
		for _, g := range grants {
			if g.Overlaps(slot) && (first[i] == 0 || g.StartsAt.Before(from)) {
				first[i], from = g.ReservationID, g.StartsAt
			}
		}
	}
	return cores, first
}

// available is the cores that a device has left in each slot between two moments, with GPU memory
// in proportion, which is what one gets who asks for cores only.
func available(use *timeline.Timeline, all timeline.Amount, slots []time.Time, from, until time.Time) []int64 {
	list := make([]int64, len(slots)-1)
	for i := range list {
		list[i] = Unknown
		if slots[i+1].After(from) && slots[i].Before(until) {
			most := use.Max(timeline.Span{From: later(slots[i], from).UnixMicro(), Until: earlier(slots[i+1], until).UnixMicro()})
			list[i] = max(0, all.Cores-most.Cores)
			if all.MemoryMiB > 0 {
				list[i] = min(list[i], max(0, all.MemoryMiB-most.MemoryMiB)*all.Cores/all.MemoryMiB)
			}
		}
	}
	return list
}
