package policies

import (
	"context"

	"weir/models"
)

// Need is the right that a change requires. The zero Need requires only that the
// actor is still authenticated: enough for the actor's own things.
type Need struct {
	Project     int64  // Platform for things without a project
	Object, Act string // as in Check
	Owner       int64  // owner of the thing, when owners may do it
}

// Write runs fn in a transaction in which the actor has the required right. Rights
// are read again inside it, under the locks that every revocation takes: after a
// revocation the change is refused, and a concurrent revocation returns only after
// the change is done. When the change itself revokes rights, they are gone on
// every server when Write returns.
func (a *Access) Write(ctx context.Context, store *models.Store, actor Actor, need Need, fn func(*models.Queries) error) error {
	return store.InRevokingTx(ctx, func(q *models.Queries) error {
		if err := a.recheck(q, actor, need); err != nil {
			return err
		}
		return fn(q)
	})
}

// recheck reads the actor's rights again under lock, and checks them.
func (a *Access) recheck(q *models.Queries, actor Actor, need Need) error {
	if actor.System != "" {
		return nil
	}
	if err := lockRights(q, need); err != nil {
		return err
	}
	now, err := reload(q, actor)
	if err != nil || need.Object == "" || a.MayOwned(now, need.Owner, need.Project, need.Object, need.Act) {
		return err
	}
	return a.Check(now, need.Project, need.Object, need.Act)
}

// lockRights takes the locks under which rights change: of the project for its
// roles, of the administrators for accounts.
func lockRights(q *models.Queries, need Need) error {
	if need.Project != Platform {
		return q.LockProjectRow(need.Project)
	}
	if need.Object == "user" {
		return q.LockUsers()
	}
	return nil
}

// reload reads the actor's account and grants again.
func reload(q *models.Queries, actor Actor) (Actor, error) {
	u, err := q.LockUser(actor.User.ID)
	if err != nil || u.Disabled || u.SessionEpoch != actor.User.SessionEpoch {
		return Actor{}, unauthenticated(err)
	}
	if actor.Session != "" {
		if ok, err := q.Authenticates(actor.Session, q.Now()); err != nil || !ok {
			return Actor{}, unauthenticated(err)
		}
	}
	now, err := actorOf(q, u)
	now.Session, now.Via = actor.Session, actor.Via
	return now, err
}

// StillActive reads the actor again. It returns an error when the account is disabled
// or the session or token has ended.
func (a *Accounts) StillActive(ctx context.Context, actor Actor) (Actor, error) {
	return reload(a.store.Read(ctx), actor)
}
