package pool

import (
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/queue"
)

// reserveAfter is how long later requests may backfill before a queued one.
// After that, nodes are reserved for the queued one, so that small requests
// cannot starve a large one.
const reserveAfter = 10 * time.Minute

// waitQueue is the queue in its order.
type waitQueue struct {
	views  []store.QueuedView
	ranked []queue.Ranked
	byID   map[int64]store.QueuedView
}

// orderQueue orders the queue.
func orderQueue(views []store.QueuedView, snap snapshot) waitQueue {
	w := waitQueue{views: views, byID: make(map[int64]store.QueuedView, len(views))}
	inUse := map[int64]int64{} // GPU cores of each project
	if len(views) > 1 {
		for _, share := range snap.shares {
			inUse[share.ProjectID] += share.Cores
		}
	}
	requests := make([]queue.Request, len(views))
	for i, v := range views {
		w.byID[v.ID] = v
		requests[i] = queue.Request{ID: v.ID, Project: v.ProjectID, Member: v.MemberID, Priority: int(v.ProjectPriority),
			Demand: demandOf(v.ProjectID, v.Demand), InUse: inUse[v.ProjectID], Quota: v.ProjectQuota.GPUCores, Since: v.RequestedAt}
	}
	w.ranked = queue.Order(requests, snap.now, reserveAfter)
	return w
}

// queueWith is the queue with some other requests in it.
func (s state) queueWith(views ...store.QueuedView) waitQueue {
	return orderQueue(append(slices.Clip(s.queued), views...), s.snapshot)
}

// hypotheticalID is the id of a hypothetical request, larger than any real id.
const hypotheticalID = int64(1) << 62

// hypothetical is a new request of a project: the newest of all.
func (s state) hypothetical(p models.Project, d models.Demand) store.QueuedView {
	v := store.QueuedView{ProjectPriority: p.Priority, ProjectQuota: p.Quota}
	v.ID, v.ProjectID, v.Demand, v.RequestedAt = hypotheticalID, p.ID, d, s.now
	return v
}
