package policies

import (
	"context"

	"weir/models"
)

// Need is what a change requires of who makes it. The zero Need requires
// only that the actor is still who they were: enough for one's own things.
type Need struct {
	Project     int64  // Platform for what belongs to none
	Object, Act string // as in Check
	Owner       int64  // user who owns the thing, when owners may do it
}

// Write runs fn in a transaction throughout which the actor has the right
// that it needs. Rights are read again inside it, under the locks that every
// revocation takes: a right that was revoked before is refused, and a
// revocation that comes later returns only after this change is done. When
// the change itself takes rights away, they are gone on every server when it
// returns.
func (a *Access) Write(ctx context.Context, store *models.Store, actor Actor, need Need, fn func(*models.Queries) error) error {
	return store.Revoking(ctx, func(q *models.Queries) error {
		if err := a.confirm(q, actor, need); err != nil {
			return err
		}
		return fn(q)
	})
}

func (a *Access) confirm(q *models.Queries, actor Actor, need Need) error {
	if actor.System != "" {
		return nil
	}
	if err := lockFor(q, need); err != nil {
		return err
	}
	now, err := reload(q, actor)
	if err != nil || need.Object == "" || a.MayOwned(now, need.Owner, need.Project, need.Object, need.Act) {
		return err
	}
	return a.Check(now, need.Project, need.Object, need.Act)
}

// lockFor takes the locks under which rights change: a project's for what
// its roles give, the administrators' for accounts.
func lockFor(q *models.Queries, need Need) error {
	if need.Project != Platform {
		return q.LockProjectRow(need.Project)
	}
	if need.Object == "user" {
		return q.LockUsers()
	}
	return nil
}

// reload reads the actor's account and grants as the transaction sees them.
func reload(q *models.Queries, actor Actor) (Actor, error) {
	u, err := q.HoldUser(actor.User.ID)
	if err != nil || u.Disabled || u.SessionEpoch != actor.User.SessionEpoch {
		return Actor{}, signInAgain(err)
	}
	if actor.Session != "" {
		if ok, err := q.Speaks(actor.Session, q.Now()); err != nil || !ok {
			return Actor{}, signInAgain(err)
		}
	}
	now, err := actorOf(q, u)
	now.Session, now.Via = actor.Session, actor.Via
	return now, err
}

// Still tells, as an error, whether the actor may still act at all: the
// account, and the session or token that speaks for it, have not ended.
func (a *Accounts) Still(ctx context.Context, actor Actor) (Actor, error) {
	return reload(a.store.Read(ctx), actor)
}
