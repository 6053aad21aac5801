package workspaces

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/workspaces/idleness"
)

// TelemetrySpan is for how long the measurements of a workspace are kept, also after its end.
const TelemetrySpan = time.Hour

// Telemetry is what a workspace used in the last [TelemetrySpan], oldest first.
func (s *Service) Telemetry(ctx context.Context, actor policies.Actor, id int64) ([]models.WorkspaceTelemetry, error) {
	if _, err := s.authorize(ctx, actor, id, policies.WorkspaceRead); err != nil {
		return nil, err
	}
	return s.store.Read(ctx).WorkspaceTelemetry(id, s.store.Now().Add(-TelemetrySpan))
}

// measure is what a workspace used between two observations; false if they do not tell, as
// after a restart of its notebook server, whose totals begin anew.
func measure(id int64, before, now *idleness.Observation) (m models.WorkspaceTelemetry, known bool) {
	milli, known := cpuUsed(before, now)
	if !known || now.MemoryBytes < 0 {
		return m, false
	}
	return models.WorkspaceTelemetry{WorkspaceID: id, At: now.At, CPUMilli: milli, MemoryMiB: now.MemoryBytes >> 20,
		Kernels: now.Kernels, BusyKernels: now.BusyKernels}, true
}

// cpuUsed is the CPU that processes used on average between two observations, in thousandths.
func cpuUsed(before, now *idleness.Observation) (milli int64, known bool) {
	if before == nil || now == nil || now.CPU < before.CPU || !now.At.After(before.At) {
		return 0, false
	}
	return int64(1000 * float64(now.CPU-before.CPU) / float64(now.At.Sub(before.At))), true
}

// utilisation is how much what uses CPU would use of each of its GPUs if they were simulated: one
// busy CPU uses all of a share.
func utilisation(c models.Claim, at time.Time, milli int64) models.HolderUtilisation {
	return models.HolderUtilisation{HolderID: c.ID, At: at, Percent: c.Demand.Cores * min(milli, 1000) / 1000}
}

// saveUtilisation stores how much a run or a deployment used of simulated GPUs between two
// observations. Not every runtime knows the CPU time.
func (r *Reconciler) saveUtilisation(ctx context.Context, c models.Claim, before, now *idleness.Observation) error {
	milli, known := cpuUsed(before, now)
	if !known || now.CPU == 0 || c.Demand.GPUs == 0 {
		return nil
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		_, err := q.SaveUtilisation([]models.HolderUtilisation{utilisation(c, now.At, milli)})
		return err
	})
}

// saveTelemetry stores what the running workspaces used. gpus has the utilisation of their
// real GPUs where it is known.
func (r *Reconciler) saveTelemetry(ctx context.Context, running []models.Workspace, observations []*idleness.Observation,
	gpus map[int64]int64) error {
	var list []models.WorkspaceTelemetry
	var used []models.HolderUtilisation
	for i, w := range running {
		m, known := measure(w.ID, r.observed[w.ID].observation, observations[i])
		if !known {
			continue
		}
		if percent, measured := gpus[w.ID]; measured {
			m.GPUPercent = &percent
		}
		list, used = append(list, m), append(used, utilisation(w.Claim(), m.At, m.CPUMilli))
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		simulated, err := q.SaveUtilisation(used)
		if err != nil {
			return err
		}
		for i, u := range used {
			if simulated[u.HolderID] {
				list[i].GPUPercent = &used[i].Percent
			}
		}
		return q.AddWorkspaceTelemetry(list, q.Now().Add(-TelemetrySpan))
	})
}
