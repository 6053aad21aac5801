package pool

import (
	"time"

	"weir/models"
	"weir/models/store"
)

// Claim takes the shares that are claimed, within the transaction q. Nothing is
// taken unless the outcome is granted.
func (s *Scheduler) Claim(q *store.Queries, c models.Claim) (models.Decision, error) {
	if err := q.LockPool(); err != nil {
		return models.Decision{}, err
	}
	st, err := s.read(q)
	if err != nil {
		return models.Decision{}, err
	}
	d := s.decideIn(st.within(c.TimeLimit()), st.queueWith(), c.ID, c.ProjectID, c.Demand)
	if d.Outcome != models.OutcomeGranted {
		return d, nil
	}
	return d, s.Take(q, c.Holder, d)
}

// Take takes the shares that a decision grants to h. The transaction has locked the
// pool since before the decision.
func (s *Scheduler) Take(q *store.Queries, h models.Holder, d models.Decision) error {
	now := q.Now()
	for _, g := range d.Grants {
		share := models.Share{DeviceID: g.Device.ID, HolderID: h.ID, ProjectID: h.ProjectID, UserID: h.UserID,
			Cores: g.Cores, MemoryMiB: g.MemoryMiB, Enforcement: g.Enforcement, From: now, GrantID: g.Reserved, EndsBy: d.EndsBy}
		if err := q.CreateShare(&share); err != nil {
			return err
		}
	}
	return nil
}

// Release ends the shares of a holder.
func (s *Scheduler) Release(q *store.Queries, holder int64) error {
	return s.ReleaseAt(q, holder, q.Now())
}

// ReleaseAt ends the shares of a holder that has ended before now.
func (s *Scheduler) ReleaseAt(q *store.Queries, holder int64, at time.Time) error {
	return q.EndShares(holder, at)
}

// Record keeps a decision and its explanation for people to read.
func (s *Scheduler) Record(q *store.Queries, c models.Claim, d models.Decision) error {
	return record(q, c, models.DecisionRecord{HolderID: &c.ID, Outcome: d.Outcome, Explanation: d.Explanation})
}

// RecordUnmet keeps a claim that was refused, which nothing holds or waits for: its ID
// is not read.
func (s *Scheduler) RecordUnmet(q *store.Queries, c models.Claim, why models.Text) error {
	return record(q, c, models.DecisionRecord{Outcome: models.OutcomeRefused, Explanation: why})
}

// record completes and saves the record of a claim of GPUs.
func record(q *store.Queries, c models.Claim, r models.DecisionRecord) error {
	if c.Demand.GPUs == 0 {
		return nil
	}
	r.At, r.ProjectID, r.UserID, r.Demand = q.Now(), c.ProjectID, c.UserID, DescribeDemand(c.Demand)
	r.GPUs, r.Cores, r.GPUModel = c.Demand.GPUs, c.Demand.Cores, c.Demand.GPUModel
	return q.CreateDecisionRecord(&r)
}
