package workspaces

import (
	"context"

	"weir/models"
)

// Tick is a round and a step of every live workspace, one after the other, so
// that a test sees what one of each does.
func (r *Reconciler) Tick(ctx context.Context) {
	r.round(ctx)
	live, err := r.store.Read(ctx).WorkspacesIn(models.StateStarting, models.StateRunning, models.StateStopping)
	r.failed(ctx, err)
	for _, w := range live {
		r.attend(ctx, w.ID)
	}
}

// ServeLine is the part of a round that places what waits.
func (r *Reconciler) ServeLine(ctx context.Context) error { return r.serveLine(ctx) }
