package workspaces

import (
	"weir/models"
	"weir/models/store"
)

// Ended counts what EndRestored has ended.
type Ended struct{ Workspaces, Runs, Deployments int }

// EndRestored ends all workspaces, runs and deployments of a database that was restored from
// a backup, and releases their shares with release: whether anything still runs of them, it
// is not the restored database's. Their users are told.
func EndRestored(q *store.Queries, release func(q *store.Queries, holder int64) error, why models.Text) (n Ended, err error) {
	now := new(q.Now())
	list, err := q.WorkspacesIn(models.ActiveStates...)
	if err != nil {
		return n, err
	}
	for _, w := range list {
		from := w.State
		w.State, w.Reason, w.EndedAt, w.RuntimeState, w.Endpoint, w.Progress = models.StateFailed, why, now, nil, models.Endpoint{}, 0
		if err := q.Transition(&w, from, models.Say("Failed: %s", why)); err != nil {
			return n, err
		}
		if err := notifyTransition(q, &w, from); err != nil {
			return n, err
		}
		if err := release(q, w.HolderID); err != nil {
			return n, err
		}
		n.Workspaces++
	}
	if n.Runs, err = endRestoredRuns(q, release, why); err != nil {
		return n, err
	}
	n.Deployments, err = endRestoredDeployments(q, release, why)
	return n, err
}

func endRestoredRuns(q *store.Queries, release func(*store.Queries, int64) error, why models.Text) (n int, err error) {
	list, err := q.RunsIn(models.LiveRuns...)
	for _, r := range list {
		from := r.State
		r.State, r.Reason, r.EndedAt, r.RuntimeState = models.RunEnded, why, new(q.Now()), nil
		if err := q.TransitionRun(&r, from, why); err != nil {
			return n, err
		}
		if err := release(q, r.HolderID); err != nil {
			return n, err
		}
		n++
	}
	return n, err
}

func endRestoredDeployments(q *store.Queries, release func(*store.Queries, int64) error, why models.Text) (n int, err error) {
	list, err := q.DeploymentsIn(models.LiveDeployments...)
	for _, d := range list {
		parts, err := q.DeploymentParts(d.ID)
		if err != nil {
			return n, err
		}
		from := d.State
		d.State, d.Failed, d.Reason, d.EndedAt = models.DeploymentFailed, true, why, new(q.Now())
		if err := q.TransitionDeployment(&d, from, why); err != nil {
			return n, err
		}
		if err := endParts(q, d, parts); err != nil {
			return n, err
		}
		if err := release(q, d.HolderID); err != nil {
			return n, err
		}
		n++
	}
	return n, err
}
