package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"

	"weir/workspaces/runtime"
)

// refreshPeriod is how long running workspaces keep the mounts of earlier rules at most,
// where the runtime can change them.
const refreshPeriod = 5 * time.Second

// watchMounts keeps the mounts of all running workspaces as the rules are, until ctx ends.
func (r *Reconciler) watchMounts(ctx context.Context) {
	runtime, ok := r.config.Runtime.(runtime.Refresher)
	for ok && ctx.Err() == nil {
		r.logError(ctx, r.refreshAll(ctx, runtime))
		select {
		case <-ctx.Done():
		case <-time.After(refreshPeriod):
		}
	}
}

func (r *Reconciler) refreshAll(ctx context.Context, runtime runtime.Refresher) error {
	running, err := r.config.Store.Read(ctx).WorkspacesIn(models.StateRunning)
	if err != nil {
		return err
	}
	return forEach(running, func(w models.Workspace) error { return r.refresh(ctx, runtime, w) })
}

// refresh mounts what a start of the workspace would mount now. The runtime compares, so
// that a refresh which a crash has interrupted is repeated.
func (r *Reconciler) refresh(ctx context.Context, runtime runtime.Refresher, w models.Workspace) error {
	holder, err := r.config.Store.Read(ctx).DirectoryUser(w.ProjectID, w.MemberID)
	if err != nil {
		return err
	}
	mounts, err := r.config.Storage.EnsureMounts(ctx, holder)
	if err != nil {
		return err
	}
	digest := models.MountsDigest(mounts)
	err = runtime.Refresh(ctx, w.RuntimeState, mounts)
	if errors.Is(err, errors.ErrUnsupported) { // its page says that a restart is needed
		return nil
	}
	if err != nil || w.Mounts == digest {
		return err
	}
	w.Mounts = digest
	return r.transition(ctx, &w, models.StateRunning, models.Say("The shared directories were mounted anew, as their rules have changed."))
}
