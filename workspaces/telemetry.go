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
	if before == nil || now == nil || now.CPU < before.CPU || now.MemoryBytes < 0 || !now.At.After(before.At) {
		return m, false
	}
	used := float64(now.CPU-before.CPU) / float64(now.At.Sub(before.At))
	return models.WorkspaceTelemetry{WorkspaceID: id, At: now.At, CPUMilli: int64(used * 1000), MemoryMiB: now.MemoryBytes >> 20,
		Kernels: now.Kernels, BusyKernels: now.BusyKernels}, true
}

// saveTelemetry stores what the running workspaces used. gpus has the utilisation of their
// GPUs where it is known.
func (r *Reconciler) saveTelemetry(ctx context.Context, running []models.Workspace, observations []*idleness.Observation,
	gpus map[int64]int64) error {
	var list []models.WorkspaceTelemetry
	for i, w := range running {
		m, known := measure(w.ID, r.observed[w.ID].observation, observations[i])
		if !known {
			continue
		}
		if percent, measured := gpus[w.ID]; measured {
			m.GPUPercent = &percent
		}
		list = append(list, m)
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		return q.AddWorkspaceTelemetry(list, q.Now().Add(-TelemetrySpan))
	})
}
