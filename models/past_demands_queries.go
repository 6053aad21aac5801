package models

import (
	"slices"
	"time"
)

// PastDemand is one demand for GPUs that there has been, met or not.
type PastDemand struct {
	ProjectID   int64
	UserID      int64
	Demand      Demand `gorm:"embedded"`
	RequestedAt time.Time
	StartedAt   *time.Time // nil: it never ran
	EndedAt     *time.Time // nil: it waits, starts or runs
	Starts      int64      // how often it was given its GPUs and started
}

// PastDemands is the newest demands for GPUs, at most so many, oldest first:
// workspaces, and launches that were refused at once. A launch that is tried
// again within a day and refused again counts once.
func (q *Queries) PastDemands(limit int) ([]PastDemand, error) {
	var asked, refused []PastDemand
	err := q.db.Table("workspaces").
		Select(`project_id, user_id, gpus, cores, gpu_memory_mib, gpu_model, requested_at, started_at, ended_at, generation AS starts`).
		Where("gpus > 0").Order("id DESC").Limit(limit).Scan(&asked).Error
	if err != nil {
		return nil, err
	}
	err = q.db.Table("decisions").Select("project_id, user_id, gpus, cores, gpu_model, at AS requested_at, at AS ended_at").
		Where("outcome = ? AND workspace_id IS NULL AND gpus > 0", OutcomeRefused).Order("id DESC").Limit(limit).Scan(&refused).Error
	if err != nil {
		return nil, err
	}
	slices.Reverse(refused)
	all := append(asked, triedOnce(refused)...)
	slices.SortStableFunc(all, func(a, b PastDemand) int { return a.RequestedAt.Compare(b.RequestedAt) })
	return all[max(len(all)-limit, 0):], nil
}

// triedOnce leaves out what the same user asked for in the same project less
// than a day before. It writes over its argument.
func triedOnce(refused []PastDemand) []PastDemand {
	type try struct {
		project, user int64
		demand        Demand
	}
	last := map[try]time.Time{}
	return slices.DeleteFunc(refused, func(d PastDemand) bool {
		t := try{d.ProjectID, d.UserID, d.Demand}
		before, again := last[t]
		last[t] = d.RequestedAt
		return again && d.RequestedAt.Sub(before) < 24*time.Hour
	})
}
