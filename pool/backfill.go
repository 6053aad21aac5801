package pool

import (
	"weir/models"
	"weir/pool/placement"
	"weir/pool/projects"
	"weir/pool/queue"
)

// reservedBefore are the nodes on which w may place nothing: they are reserved
// for those who come before it in the queue.
func (s *Scheduler) reservedBefore(q *models.Queries, snap snapshot, waiting waitQueue, w models.Workspace) (map[int64]bool, error) {
	id := w.ID
	if id == 0 {
		id = hypotheticalID
	}
	policy, reserved := *s.policy.Load(), map[int64]bool{}
	for _, r := range waiting.ranked {
		if r.ID == id {
			break
		}
		if err := reserve(q, snap, r, waiting.byID[r.ID].Workspace, policy, reserved); err != nil {
			return nil, err
		}
	}
	return reserved, nil
}

// reserve adds, for a request that has waited for longer than reserveAfter,
// the nodes on which it can come to be placed as they lend today. Who waits
// only for the own limit or the own project's quota reserves nothing.
func reserve(q *models.Queries, snap snapshot, r queue.Ranked, w models.Workspace, policy placement.Policy, reserved map[int64]bool) error {
	if snap.now.Sub(r.Since) < reserveAfter || r.Demand.GPUs == 0 {
		return nil
	}
	if fits, err := fitsQuota(q, w); err != nil || !fits {
		return err
	}
	for _, n := range snap.nodes(onceReleased, r.Project).Nodes {
		if reserved[n.ID] {
			continue
		}
		if _, refusal := placement.Place(placement.Snapshot{Nodes: []placement.Node{n}}, r.Demand, policy); refusal == nil {
			reserved[n.ID] = true
		}
	}
	return nil
}

// fitsQuota tells whether a waiting workspace's member may use its demand now.
func fitsQuota(q *models.Queries, w models.Workspace) (bool, error) {
	project, err := q.Project(models.Everything, w.ProjectID)
	if err != nil {
		return false, err
	}
	m, err := q.MemberView(models.Everything, w.ProjectID, w.MemberID)
	if err != nil {
		return false, models.IgnoreNotFound(err)
	}
	use, err := projects.UseOf(q, project, m.ID, m.Limit)
	return err == nil && len(use.ExceededBy(w.Demand.Resources())) == 0, err
}
