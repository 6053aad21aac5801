package pool

import (
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
	a := s.decideIn(st, st.queueWith(), c.ID, c.ProjectID, c.Demand)
	if a.Outcome != models.OutcomeGranted {
		return a, nil
	}
	return a, s.Take(q, c.Holder, a)
}

// Take takes the shares that a decision grants to h. The transaction has locked the
// pool since before the decision.
func (s *Scheduler) Take(q *store.Queries, h models.Holder, a models.Decision) error {
	now := q.Now()
	for _, g := range a.Grants {
		share := models.Share{DeviceID: g.Device.ID, HolderID: h.ID, ProjectID: h.ProjectID, UserID: h.UserID,
			Cores: g.Cores, MemoryMiB: g.MemoryMiB, Enforcement: g.Enforcement, From: now, GrantID: g.Reserved}
		if err := q.CreateShare(&share); err != nil {
			return err
		}
	}
	return nil
}

// Release ends the shares of a holder.
func (s *Scheduler) Release(q *store.Queries, holder int64) error {
	return q.EndShares(holder, q.Now())
}

// Record keeps a decision and its explanation for people to read. A claim that was
// refused at once has no holder: its ID is 0.
func (s *Scheduler) Record(q *store.Queries, c models.Claim, a models.Decision) error {
	if c.Demand.GPUs == 0 {
		return nil
	}
	d := models.DecisionRecord{At: q.Now(), ProjectID: c.ProjectID, UserID: c.UserID,
		Outcome: a.Outcome, Demand: DescribeDemand(c.Demand), Explanation: a.Explanation,
		GPUs: c.Demand.GPUs, Cores: c.Demand.Cores, GPUModel: c.Demand.GPUModel}
	if c.ID != 0 {
		d.HolderID = &c.ID
	}
	return q.CreateDecisionRecord(&d)
}
