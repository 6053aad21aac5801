package kube

import (
	"context"
	"errors"
	"os"

	"weir/models"
	"weir/workspaces/runtime"
)

// Start starts a command in a pod; see [runtime.Runs]. It returns when the pod is created.
func (r *Runs) Start(ctx context.Context, run int64, spec runtime.Spec, command []string) (runtime.State, error) {
	if run <= 0 || len(command) == 0 {
		return nil, errors.New("a run needs a positive id and a command")
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	spec.Workspace, spec.Command, spec.Token = run, command, ""
	id := r.cluster.config.runRef(r.kind, spec)
	if _, err := r.cursor(id); err == nil {
		return id.state(), nil
	}
	object, err := r.cluster.config.runPodObject(r.kind, spec)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(r.path(id), 0o700), r.write(id, stateFile, id)); err != nil {
		return nil, models.Unavailable(err, "The shared storage is not available.")
	}
	pod, uncertain, err := r.cluster.createPod(ctx, id, spec.Project, object)
	if uncertain {
		return id.state(), refusal(err)
	}
	if err != nil {
		return nil, refusal(err)
	}
	models.Failpoint("kube.pod")
	if err := r.cluster.applyWaited(ctx, pod, r.cluster.config.runObjects(r.kind, spec, pod)); err != nil {
		return id.state(), refusal(err)
	}
	if err := r.write(id, cursorFile, cursor{}); err != nil {
		return id.state(), models.Unavailable(err, "The shared storage is not available.")
	}
	return id.state(), nil
}
