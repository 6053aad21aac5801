package pool

import (
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/estimates"
	"weir/pool/placement"
)

// Estimate is when a queued request can probably be met.
type Estimate struct {
	Outcome estimates.Outcome
	At      time.Time // when Placed
	Known   bool      // from announced ends alone; otherwise also from past durations
	Text    models.Text
}

// estimateNew estimates when the demand of a new workspace could be met if it were
// queued now.
func (s *Scheduler) estimateNew(q *store.Queries, st state, p models.Project, d models.Demand) (Estimate, error) {
	all, err := s.estimate(q, st.snapshot, st.queueWith(st.hypothetical(p, d)))
	return all[hypotheticalID], err
}

// estimate estimates when each queued request can be met.
func (s *Scheduler) estimate(q *store.Queries, snap snapshot, waiting waitQueue) (map[int64]Estimate, error) {
	if len(waiting.ranked) == 0 {
		return nil, nil
	}
	within, err := withinQuota(q, waiting.views)
	if err != nil {
		return nil, err
	}
	spans, err := q.PastSpans(500)
	if err != nil {
		return nil, err
	}
	ends, err := snap.ends(q, spans)
	if err != nil {
		return nil, err
	}
	var requests []estimates.Waiting
	demands, all := map[int64]placement.Demand{}, make(map[int64]Estimate, len(waiting.ranked))
	for _, r := range waiting.ranked {
		if !within[r.ID] && r.ID != hypotheticalID {
			all[r.ID] = Estimate{Outcome: estimates.Unknown, Text: models.Say("unknown until the quota and the role's limit allow it")}
			continue
		}
		lasts, _ := estimates.Remaining(0, spans.Of(r.Project), 0)
		requests = append(requests, estimates.Waiting{Holder: r.ID, Demand: r.Demand, Lasts: lasts, Firm: r.Since.Add(reserveAfter)})
		demands[r.ID] = r.Demand
	}
	s.mu.Lock()
	policy := s.policy
	s.mu.Unlock()
	for _, e := range estimates.EstimateEach(snap.placement(asItIs), ends, requests, snap.now, policy) {
		f := Estimate{Outcome: e.Outcome, At: e.At, Known: e.Known}
		f.Text = describeWait(f, snap.now)
		if e.Outcome == estimates.Never {
			if placement.Refuse(snap.placement(onceAllLend), demands[e.Holder]) == nil {
				f.Outcome, f.Text = estimates.Unknown, models.Say("unknown until a machine that does not lend now resumes lending")
			}
		}
		all[e.Holder] = f
	}
	return all, nil
}

// describeWait describes an estimate.
func describeWait(f Estimate, now time.Time) models.Text {
	wait := f.At.Sub(now)
	switch {
	case f.Outcome == estimates.Never:
		return models.Say("not possible with the GPUs in the pool")
	case f.Outcome == estimates.Unknown:
		return models.Say("unknown (not enough usage history)")
	case wait < time.Minute:
		return models.Say("within a minute")
	case wait < time.Hour:
		return models.Say("in about %d minutes", int64(wait.Round(time.Minute)/time.Minute))
	case wait < 48*time.Hour:
		return models.Say("in about %d hours", int64(wait.Round(time.Hour)/time.Hour))
	default:
		return models.Say("in about %d days", int64(wait.Round(24*time.Hour)/(24*time.Hour)))
	}
}

// ends are the expected ends of the shares in use: the announced end, the end
// of the membership or the project, or the usual duration in the project. What
// reservations keep or use of a device ends with the last of them, at the latest.
func (s snapshot) ends(q *store.Queries, spans store.Spans) ([]estimates.End, error) {
	periods, err := q.PeriodEnds()
	if err != nil {
		return nil, err
	}
	var ends []estimates.End
	for m, share := range s.shares {
		age := s.now.Sub(share.From)
		e := estimates.End{Holder: share.HolderID}
		if left, ok := estimates.Remaining(age, spans.Of(share.ProjectID), 0); ok {
			e.At = s.now.Add(left)
		}
		if g, found := m.grantOf(share, s.now); found {
			e.At, e.Known = g.EndsAt, true
			if m.admits(g) {
				e.At = m.lastReserved(share.DeviceID)
			}
		}
		if by := after(share.EndsBy, s.now); by.Before(forever) && (e.At.IsZero() || by.Before(e.At)) {
			e.At, e.Known = by, true
		}
		for _, at := range []*time.Time{share.EndsAt, periods[share.HolderID]} {
			if at != nil && (e.At.IsZero() || at.Before(e.At)) {
				e.At, e.Known = *at, true
			}
		}
		if !e.At.IsZero() && m.lendsUntil(e.At, s.now) {
			ends = append(ends, e)
		}
	}
	for _, m := range s.machines {
		for _, d := range m.devices {
			if at := m.lastReserved(d.ID); at.After(s.now) && m.lendsUntil(at, s.now) {
				ends = append(ends, estimates.End{Holder: -d.ID, At: at, Known: true})
			}
		}
	}
	return ends, nil
}

// lendsUntil reports whether a machine that lends now does so until a moment.
func (m *machine) lendsUntil(at, now time.Time) bool {
	open, closes := m.Terms.Open(now)
	return !open || closes == nil || at.Before(*closes)
}
