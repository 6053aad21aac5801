package pool

import (
	"weir/models"
	"weir/models/store"
)

// Claim takes the shares that w demands, within the transaction q. Nothing is
// taken unless the outcome is granted.
func (s *Scheduler) Claim(q *store.Queries, w models.Workspace) (models.Decision, error) {
	if err := q.LockPool(); err != nil {
		return models.Decision{}, err
	}
	st, err := s.read(q)
	if err != nil {
		return models.Decision{}, err
	}
	a := s.decideIn(st, st.queueWith(), w.ID, w.ProjectID, w.Demand)
	if a.Outcome != models.OutcomeGranted {
		return a, nil
	}
	return a, s.Take(q, w, a)
}

// Take takes the shares that a decision grants to w. The transaction has locked the
// pool since before the decision.
func (s *Scheduler) Take(q *store.Queries, w models.Workspace, a models.Decision) error {
	now := q.Now()
	for _, g := range a.Grants {
		share := models.Share{DeviceID: g.Device.ID, WorkspaceID: w.ID, ProjectID: w.ProjectID, UserID: w.UserID,
			Cores: g.Cores, MemoryMiB: g.MemoryMiB, Enforcement: g.Enforcement, From: now, GrantID: g.Reserved}
		if err := q.CreateShare(&share); err != nil {
			return err
		}
	}
	return nil
}

// Release ends the shares of a workspace.
func (s *Scheduler) Release(q *store.Queries, workspace int64) error {
	return q.EndShares(workspace, q.Now())
}

// Record keeps a decision and its explanation for people to read.
func (s *Scheduler) Record(q *store.Queries, w models.Workspace, a models.Decision) error {
	return record(q, w.Demand, models.DecisionRecord{ProjectID: w.ProjectID, UserID: w.UserID, WorkspaceID: &w.ID,
		Outcome: a.Outcome, Explanation: a.Explanation})
}

// RecordUnmet keeps a demand that was refused, which nothing waits for.
func (s *Scheduler) RecordUnmet(q *store.Queries, project, user int64, d models.Demand, why models.Text) error {
	return record(q, d, models.DecisionRecord{ProjectID: project, UserID: user, Outcome: models.OutcomeRefused, Explanation: why})
}

// record completes and saves the record of a demand for GPUs.
func record(q *store.Queries, d models.Demand, r models.DecisionRecord) error {
	if d.GPUs == 0 {
		return nil
	}
	r.At, r.Demand, r.GPUs, r.Cores, r.GPUModel = q.Now(), DescribeDemand(d), d.GPUs, d.Cores, d.GPUModel
	return q.CreateDecisionRecord(&r)
}
