package kube

import (
	"context"

	"weir/models"
	"weir/workspaces/runtime"
)

// Poll returns the status of a workspace; see [runtime.Runtime].
func (r *Runtime) Poll(ctx context.Context, state runtime.State) (runtime.Status, error) {
	id, err := parseState(state)
	if err != nil {
		return runtime.Status{}, err
	}
	pod, err := r.find(ctx, id)
	if err != nil {
		return runtime.Status{}, err
	}
	if pod == nil {
		return r.finalStatus(id), nil
	}
	status := describe(pod, r.eventsOf(ctx, pod))
	status.LogTail = r.logTailOf(ctx, pod)
	return status, nil
}

// finalStatus returns the status of a deleted pod.
func (r *Runtime) finalStatus(id ref) runtime.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, ok := r.deleted[id]; ok {
		return f.status
	}
	return runtime.Status{Phase: runtime.PhaseExited, ExitCode: -1, Message: models.Say("Jupyter is no longer running")}
}
