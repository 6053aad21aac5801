package pool

import (
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/placement"
	"weir/pool/queue"
	"weir/pool/quota"
)

// reserves reports whether a request has waited for longer than reserveAfter.
func (s state) reserves(c models.Claim) bool {
	return s.now.Sub(c.RequestedAt) >= reserveAfter && c.Demand.GPUs > 0
}

// withinQuota reports, by id, of which claims in the queue the demand is within limit and
// quota now.
func withinQuota(q *store.Queries, queued []store.QueuedView) (map[int64]bool, error) {
	if len(queued) == 0 {
		return nil, nil
	}
	projects := models.Map(queued, func(v store.QueuedView) int64 { return v.ProjectID })
	byProject, err := q.InUseByProjects(projects)
	if err != nil {
		return nil, err
	}
	byMember, err := q.InUseByMembers(projects...)
	within := map[int64]bool{}
	for _, v := range queued {
		use := quota.Use{Quota: v.ProjectQuota, InUseByProject: byProject[v.ProjectID], Limit: v.Limit, InUseByMember: byMember[v.MemberID]}
		within[v.ID] = len(use.ExceededBy(v.Demand.Resources())) == 0
	}
	return within, err
}

// reservedBefore are the providers on which the request with an id may place
// nothing: they are reserved for the requests before it in the queue.
func (s state) reservedBefore(waiting waitQueue, id int64) (reserved []int64) {
	for _, r := range waiting.ranked {
		if r.ID == id {
			break
		}
		reserved = s.reserve(r, waiting.byID[r.ID].TimeLimit(), reserved)
	}
	return reserved
}

// withoutHolders is the node of a machine as it would be without holders, with what reservations keep
// from what ends by a moment.
func (m *machine) withoutHolders(now, end time.Time) placement.Node {
	n := *m.nodes[onceReleased]
	kept := (&machine{Provider: m.Provider, devices: m.devices, reserved: m.reserved}).reservedShares(now, end)
	n.Devices = slices.Clone(n.Devices)
	for i := range n.Devices {
		n.Devices[i].Shares = kept[n.Devices[i].ID]
	}
	return n
}

// reserve adds, for a request that has waited for longer than reserveAfter,
// the providers on which it can come to be placed as they lend today. A
// request that waits only for its member's limit or its project's quota
// reserves nothing.
func (s state) reserve(r queue.Ranked, limit time.Duration, reserved []int64) []int64 {
	if !s.withinQuota[r.ID] {
		return reserved
	}
	for _, m := range s.machines {
		n := placement.Snapshot{Nodes: []placement.Node{m.withoutHolders(s.now, s.endsBy(limit))}}
		if !slices.Contains(reserved, m.ID) && placement.Refuse(n, r.Demand) == nil {
			reserved = append(reserved, m.ID)
		}
	}
	return reserved
}
