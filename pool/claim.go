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
	if w.Demand.GPUs == 0 {
		return nil
	}
	d := models.DecisionRecord{At: q.Now(), ProjectID: w.ProjectID, UserID: w.UserID,
		Outcome: a.Outcome, Demand: DescribeDemand(w.Demand), Explanation: a.Explanation,
		GPUs: w.Demand.GPUs, Cores: w.Demand.Cores, GPUModel: w.Demand.GPUModel}
	if w.ID != 0 {
		d.WorkspaceID = &w.ID
	}
	return q.CreateDecisionRecord(&d)
}
