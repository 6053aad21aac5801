package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// Ended counts what StartGeneration has ended.
type Ended struct{ Workspaces, Runs, Deployments int }

// StartGeneration makes a database that is a copy of another, as of a time, the next
// generation of its installation. It ends all workspaces, runs and deployments for a reason,
// and releases their shares: whether anything still runs of them, it is not this database's.
// The users of workspaces are told. No server uses the database meanwhile.
func StartGeneration(ctx context.Context, db *store.Store, of time.Time, why models.Text) (
	in models.Installation, ended Ended, err error) {
	err = db.InTx(ctx, func(q *store.Queries) (err error) {
		before, err := q.Installation()
		if err != nil {
			return err
		}
		if in, err = q.NextGeneration(of); err != nil {
			return err
		}
		if ended, err = endRestored(q, why); err != nil {
			return err
		}
		return policies.System("admin").Audit(q, policies.Change{Action: "restore", Object: "installation", ID: in.Generation,
			Before: map[string]any{"generation": before.Generation},
			After:  map[string]any{"generation": in.Generation, "backup_at": of.UTC().Format(time.RFC3339)}})
	})
	return in, ended, err
}

func endRestored(q *store.Queries, why models.Text) (n Ended, err error) {
	if n.Workspaces, err = endRestoredWorkspaces(q, why); err != nil {
		return n, err
	}
	if n.Runs, err = endRestoredRuns(q, why); err != nil {
		return n, err
	}
	n.Deployments, err = endRestoredDeployments(q, why)
	return n, err
}

func endRestoredWorkspaces(q *store.Queries, why models.Text) (int, error) {
	list, err := q.WorkspacesIn(models.ActiveStates...)
	for _, w := range list {
		from := w.State
		w.State, w.Reason, w.EndedAt, w.RuntimeState, w.Endpoint, w.Progress = models.StateFailed, why, new(q.Now()), nil, models.Endpoint{}, 0
		err := q.Transition(&w, from, models.Say("Failed: %s", why))
		if err = errors.Join(err, notifyTransition(q, &w, from), q.EndShares(w.HolderID, q.Now())); err != nil {
			return 0, err
		}
	}
	return len(list), err
}

func endRestoredRuns(q *store.Queries, why models.Text) (int, error) {
	list, err := q.RunsIn(models.LiveRuns...)
	for _, r := range list {
		from := r.State
		r.State, r.Reason, r.EndedAt, r.RuntimeState = models.RunEnded, why, new(q.Now()), nil
		if err := errors.Join(q.TransitionRun(&r, from, why), notifyRunEnded(q, r), q.EndShares(r.HolderID, q.Now())); err != nil {
			return 0, err
		}
	}
	return len(list), err
}

func endRestoredDeployments(q *store.Queries, why models.Text) (int, error) {
	list, err := q.DeploymentsIn(models.LiveDeployments...)
	for _, d := range list {
		parts, err := q.DeploymentParts(d.ID)
		if err != nil {
			return 0, err
		}
		from := d.State
		d.State, d.Failed, d.Reason, d.EndedAt = models.DeploymentFailed, true, why, new(q.Now())
		if err := q.TransitionDeployment(&d, from, why); err != nil {
			return 0, err
		}
		if err := errors.Join(endParts(q, d, parts), q.EndShares(d.HolderID, q.Now())); err != nil {
			return 0, err
		}
	}
	return len(list), err
}
