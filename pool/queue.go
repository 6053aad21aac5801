package pool

import (
	"time"

	"weir/models"
	"weir/pool/queue"
)

// reserveAfter is how long later requests may backfill before a queued one.
// After that, nodes are reserved for the queued one, so that small requests
// cannot starve a large one.
const reserveAfter = 10 * time.Minute

// waitQueue is the queue in its order.
type waitQueue struct {
	views  []models.QueuedView
	ranked []queue.Ranked
	byID   map[int64]models.QueuedView
}

// loadQueue orders the queue, with an extra request unless that is nil.
func loadQueue(q *models.Queries, snap snapshot, extra *models.QueuedView) (w waitQueue, err error) {
	if w.views, err = q.Queued(); err != nil {
		return w, err
	}
	if extra != nil {
		w.views = append(w.views, *extra)
	}
	var inUse map[int64]int64
	if len(w.views) > 1 { // one needs no order
		inUse = snap.inUse()
	}
	w.byID = make(map[int64]models.QueuedView, len(w.views))
	requests := make([]queue.Request, len(w.views))
	for i, v := range w.views {
		w.byID[v.ID] = v
		requests[i] = queue.Request{ID: v.ID, Project: v.ProjectID, Member: v.MemberID, Priority: int(v.ProjectPriority),
			Demand: demandOf(v.ProjectID, v.Demand), InUse: inUse[v.ProjectID], Quota: v.ProjectQuota, Since: v.RequestedAt}
	}
	w.ranked = queue.Order(requests, snap.now, reserveAfter)
	return w, nil
}

// queueWith is the queue with w in it, which need not exist yet.
func queueWith(q *models.Queries, snap snapshot, w models.Workspace) (waitQueue, error) {
	if w.ID != 0 {
		return loadQueue(q, snap, nil)
	}
	extra, err := hypothetical(q, w)
	if err != nil {
		return waitQueue{}, err
	}
	return loadQueue(q, snap, extra)
}

// hypothetical is the request of a workspace that does not exist yet; it is
// the newest of all.
func hypothetical(q *models.Queries, w models.Workspace) (*models.QueuedView, error) {
	project, err := q.Project(models.Everything, w.ProjectID)
	if err != nil {
		return nil, err
	}
	v := models.QueuedView{ProjectPriority: project.Priority, ProjectQuota: project.Quota.GPUCores}
	v.Workspace, v.ID, v.RequestedAt = w, hypotheticalID, q.Now()
	return &v, nil
}

// hypotheticalID is the id of a hypothetical request, larger than any real id.
const hypotheticalID = int64(1) << 62
