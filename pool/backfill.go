package pool

import (
	"slices"

	"weir/models"
	"weir/pool/placement"
	"weir/pool/projects"
	"weir/pool/queue"
)

// reservedBefore are the providers on which w may place nothing: they are
// reserved for the requests before it in the queue.
func reservedBefore(q *models.Queries, snap snapshot, waiting waitQueue, w models.Workspace) (reserved []int64, err error) {
	id := w.ID
	if id == 0 {
		id = hypotheticalID
	}
	for _, r := range waiting.ranked {
		if r.ID == id {
			break
		}
		if reserved, err = reserve(q, snap, r, waiting.byID[r.ID].Workspace, reserved); err != nil {
			return nil, err
		}
	}
	return reserved, nil
}

// reserve adds, for a request that has waited for longer than reserveAfter,
// the providers on which it can come to be placed as they lend today. A
// request that waits only for its member's limit or its project's quota
// reserves nothing.
func reserve(q *models.Queries, snap snapshot, r queue.Ranked, w models.Workspace, reserved []int64) ([]int64, error) {
	if snap.now.Sub(r.Since) < reserveAfter || r.Demand.GPUs == 0 {
		return reserved, nil
	}
	if fits, err := fitsQuota(q, w); err != nil || !fits {
		return reserved, err
	}
	for _, m := range snap.machines {
		n := placement.Snapshot{Nodes: []placement.Node{*m.nodes[onceReleased]}}
		if !slices.Contains(reserved, m.ID) && placement.Refuse(n, r.Demand) == nil {
			reserved = append(reserved, m.ID)
		}
	}
	return reserved, nil
}

// fitsQuota reports whether limit and quota allow the demand of a queued
// workspace now.
func fitsQuota(q *models.Queries, w models.Workspace) (bool, error) {
	project, err := q.Project(models.AllProjects, w.ProjectID)
	if err != nil {
		return false, err
	}
	m, err := q.MemberView(models.AllProjects, w.ProjectID, w.MemberID)
	if err != nil {
		return false, models.IgnoreNotFound(err)
	}
	use, err := projects.UseOf(q, project, m.ID, m.Limit)
	return err == nil && len(use.ExceededBy(w.Demand.Resources())) == 0, err
}
