package broker

import (
	"math"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/timeline"
)

// offer is what a project can reserve for a demand.
type offer struct {
	demand   models.Demand // with its GPU memory
	devices  []timeline.Device
	calendar *timeline.Calendar // as the project sees it
}

// offer is what a project can reserve beside reservations as they are assumed to be.
func (s *Service) offer(q *store.Queries, project int64, d models.Demand, as models.AssumedReservations) (o offer, err error) {
	var taken []timeline.Grant
	if o.demand, o.devices, taken, err = s.pool.Reservable(q, project, d, as); err != nil {
		return o, err
	}
	o.calendar = timeline.NewCalendar(o.devices)
	o.calendar.Add(taken)
	return o, nil
}

// found is what an offer has for a wish.
type found struct {
	wish
	demand  models.Demand // with its GPU memory
	decided timeline.Decision
	moves   []Move
}

// search looks for what a wish can have of an offer, which it does not change.
func (s *Service) search(q *store.Queries, o offer, w wish) (f found, err error) {
	request, err := s.request(q, demandOf(o.demand, w.duration, w.from, w.until), w.priority.TaskType, w.zone, o.devices)
	if err != nil {
		return f, err
	}
	request.Part, request.Later = w.part, w.later
	f = found{wish: w, demand: o.demand, decided: o.calendar.Decide(request)}
	o.calendar.Remove(f.decided.Grants)
	if f.decided.Outcome == timeline.Refused {
		f.decided.Earliest = o.wholeMinute(request, f.decided.Earliest)
	}
	return f, nil
}

// request is what a calendar decides on for a wish, with the ranks of the models of its
// devices and the distances of their machines.
func (s *Service) request(q *store.Queries, d timeline.Demand, task models.TaskType, zone string, devices []timeline.Device) (
	r timeline.Request, err error) {
	preferred := s.rules.Objectives.Models[task]
	if len(preferred) > 0 {
		d.Ranks = map[string]int{}
	}
	for _, dev := range devices {
		if i := slices.IndexFunc(preferred, func(p string) bool { return s.pool.MatchesModel(dev.Model, p) }); i >= 0 {
			d.Ranks[dev.Model] = i
		} else if d.Ranks != nil {
			d.Ranks[dev.Model] = len(preferred)
		}
	}
	r.Demand = d
	if s.rules.Objectives.Placement == Spread {
		r.Preference.Objective = timeline.Spread
	}
	r.Preference.Distance, err = s.distances(q, zone)
	return r, err
}

const (
	minuteMicros = int64(time.Minute / time.Microsecond)
	// maxMinuteTries bounds the search for a start at a whole minute.
	maxMinuteTries = 100
)

// wholeMinute is the first whole minute from an earliest start on at which all of a request could begin, which people
// can ask for: they see minutes. If it is not found soon, it is that start.
func (o offer) wholeMinute(r timeline.Request, earliest int64) int64 {
	at := earliest
	for range maxMinuteTries {
		if at == math.MaxInt64 || at%minuteMicros == 0 {
			return at
		}
		r.Demand.Window = timeline.Span{From: at - at%minuteMicros + minuteMicros, Until: math.MaxInt64}
		grants, ok := o.calendar.Earliest(r.Demand, r.Preference)
		if !ok {
			break
		}
		at = grants[0].Span.From
	}
	return earliest
}
