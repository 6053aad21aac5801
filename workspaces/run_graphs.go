package workspaces

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"weir/models"
	"weir/policies"
	"weir/workspaces/graph/journal"
	"weir/workspaces/runtime"
)

// RunGraph returns the progress of the task graph that a run executes: its plan, and what it has
// done so far. Who may read the output of the run may see it. The error is not found if the run
// executes none, or was removed.
func (s *Service) RunGraph(ctx context.Context, actor policies.Actor, id int64) (models.GraphProgress, error) {
	state, err := s.runGraph(ctx, actor, id)
	return state.Progress, err
}

func (s *Service) runGraph(ctx context.Context, actor policies.Actor, id int64) (state journal.State, err error) {
	r, err := s.readableRun(ctx, actor, id)
	if err != nil {
		return state, err
	}
	if r.RuntimeState == nil || s.Runs == nil {
		return state, models.NotFound("task graph")
	}
	content, err := s.Runs.File(r.RuntimeState, runtime.GraphJournal, journal.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return state, models.NotFound("task graph")
	}
	if err != nil {
		return state, err
	}
	state, why, err := journal.Read(bytes.NewReader(content))
	if err == nil && (!why.Empty() || state.Graph == "") { // anybody can write such a file
		err = models.NotFound("task graph")
	}
	state.Progress.Interrupted = r.State == models.RunEnded && state.Progress.EndedAt == nil
	return state, err
}
