package workspaces

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"weir/models"
	"weir/models/store"
	"weir/policies"

	"weir/workspaces/runtime"
)

// How long running workspaces keep the mounts of earlier rules at most, where the runtime
// can change them, and where it cannot, access that was withdrawn: there are thousands of
// workspaces then, and each asks for the rules.
const (
	refreshPeriod    = 5 * time.Second
	withdrawalPeriod = 30 * time.Second
)

// watchMounts keeps the mounts of all running workspaces as the rules are, until ctx ends.
func (r *Reconciler) watchMounts(ctx context.Context) {
	period := withdrawalPeriod
	if _, ok := r.config.Runtime.(runtime.Refresher); ok {
		period = refreshPeriod
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) { r.logError(ctx, r.refreshAll(ctx)) }, period)
}

func (r *Reconciler) refreshAll(ctx context.Context) error {
	running, err := r.config.Store.Read(ctx).WorkspacesIn(models.StateRunning)
	if err != nil {
		return err
	}
	r.unmounted.begin()
	return forEach(running, func(w models.Workspace) error { return r.refresh(ctx, w) })
}

// refresh mounts what a start of the workspace would mount now. Where only a restart can,
// its page says so, and the workspace is stopped if access was withdrawn.
func (r *Reconciler) refresh(ctx context.Context, w models.Workspace) error {
	holder, err := r.config.Store.Read(ctx).DirectoryUser(w.ProjectID, w.MemberID)
	if err != nil {
		return err
	}
	if refresher, ok := r.config.Runtime.(runtime.Refresher); ok {
		if err = r.remount(ctx, refresher, w, holder); r.unmounted.passes(ctx, w.ID, err) {
			return err
		}
	}
	return errors.Join(unlessUnsupported(err), r.stopIfWithdrawn(ctx, w, holder))
}

// unlessUnsupported is the error of a change of mounts, which is none where only a restart changes them.
func unlessUnsupported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// remount lets the runtime change the mounts. It compares, so that a refresh which a crash
// has interrupted is repeated.
func (r *Reconciler) remount(ctx context.Context, refresher runtime.Refresher, w models.Workspace, holder models.DirectoryUser) error {
	mounts, access, err := r.config.Storage.EnsureMounts(ctx, holder)
	if err != nil {
		return err
	}
	digest := models.MountsDigest(mounts)
	err = refresher.Refresh(ctx, w.RuntimeState, mounts)
	if err != nil || w.Mounts == digest {
		return err
	}
	w.Mounts, w.FileAccess = digest, access
	return r.transition(ctx, &w, models.StateRunning, models.Say("The shared directories were mounted anew, as their rules have changed."))
}

// withdrawn names a directory to which the rules give a member less than they gave before;
// "" if there is none, or it is not known.
func (r *Reconciler) withdrawn(ctx context.Context, holder models.DirectoryUser, access []models.PathAccess) (string, error) {
	if holder.Ended || holder.Left || len(access) == 0 {
		return "", nil
	}
	path, err := r.config.Storage.Withdrawn(ctx, holder, access)
	return models.VisibleName(string(path)), err
}

// stopIfWithdrawn stops a workspace if rules give its member less access to a directory
// than when it started. What the mounts would be now is not compared: that also depends on
// which directories there are. Who has left is evicted, for a reason that says more.
func (r *Reconciler) stopIfWithdrawn(ctx context.Context, w models.Workspace, holder models.DirectoryUser) error {
	name, err := r.withdrawn(ctx, holder, w.FileAccess)
	if err != nil || name == "" {
		return err
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		now, err := q.Workspace(store.AllProjects, w.ID)
		if err != nil || now.State != w.State || now.Generation != w.Generation {
			return err
		}
		err = notifyOwner(q, w, models.NotificationAccessWithdrawn,
			models.Say("The workspace %s is being stopped: rules now give you less access to %s. Start it again to use what they allow.", w.Name, name))
		return errors.Join(err, stopWorkspace(q, policies.System("reconciler"), &now,
			models.Say("Stopped: rules now give less access to %s. Start the workspace again to use what they allow.", name)))
	})
}
