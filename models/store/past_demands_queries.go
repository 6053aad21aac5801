package store

import (
	"slices"
	"time"

	"weir/models"
)

// PastDemand is a demand for GPUs, met or not.
type PastDemand struct {
	ProjectID   int64
	UserID      int64
	Demand      models.Demand `gorm:"embedded"`
	RequestedAt time.Time
	StartedAt   *time.Time // nil: never started
	EndedAt     *time.Time // nil: has not ended
	Starts      int64      // how often it started
}

// PastDemands lists the newest demands for GPUs since a time, at most limit, oldest first:
// workspaces, runs and refused launches. A launch that is refused repeatedly within a
// day counts once.
func (q *Queries) PastDemands(since time.Time, limit int) ([]PastDemand, error) {
	var launched, refused []PastDemand
	var holders []struct {
		PastDemand `gorm:"embedded"`
		Kind       models.HolderKind
	}
	err := q.db.Table("holders").Joins("LEFT JOIN workspaces ON workspaces.holder_id = holders.id").
		Select(`holders.project_id, holders.user_id, gpus, cores, gpu_memory_mib, gpu_model, requested_at, started_at, ended_at, holders.kind,
			COALESCE(workspaces.generation, CASE WHEN started_at IS NULL THEN 0 ELSE 1 END) AS starts`).
		Where("gpus > 0 AND (requested_at >= ? OR started_at >= ?)", since, since).Order("holders.id DESC").Limit(limit).Scan(&holders).Error
	if err != nil {
		return nil, err
	}
	for _, h := range holders {
		if h.Kind == models.HolderDeployment && h.StartedAt != nil { // it demands anew whenever it is deployed again after idleness
			h.RequestedAt = *h.StartedAt
		}
		if !h.RequestedAt.Before(since) {
			launched = append(launched, h.PastDemand)
		}
	}
	err = q.db.Table("decisions").Select("project_id, user_id, gpus, cores, gpu_model, at AS requested_at, at AS ended_at").
		Where("outcome = ? AND holder_id IS NULL AND gpus > 0 AND at >= ?", models.OutcomeRefused, since).Order("id DESC").Limit(limit).Scan(&refused).Error
	if err != nil {
		return nil, err
	}
	slices.Reverse(refused)
	all := append(launched, withoutRetries(refused)...)
	slices.SortStableFunc(all, func(a, b PastDemand) int { return a.RequestedAt.Compare(b.RequestedAt) })
	return all[max(len(all)-limit, 0):], nil
}

// withoutRetries removes repetitions of a demand by the same user in the same
// project within a day. It modifies its argument.
func withoutRetries(refused []PastDemand) []PastDemand {
	type identity struct {
		project, user int64
		demand        models.Demand
	}
	last := map[identity]time.Time{}
	return slices.DeleteFunc(refused, func(d PastDemand) bool {
		id := identity{d.ProjectID, d.UserID, d.Demand}
		before, again := last[id]
		last[id] = d.RequestedAt
		return again && d.RequestedAt.Sub(before) < 24*time.Hour
	})
}
