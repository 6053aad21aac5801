package policies

import (
	"context"

	"weir/models"
	"weir/models/store"
)

// Write runs fn in a transaction in which the actor has a right. The right is
// checked before, so that refusals cost no transaction, and again inside it, under
// the locks that every revocation takes: after a revocation the change is refused,
// and a concurrent revocation returns only after the change is done. When the
// change itself revokes rights, they are gone on every server when Write returns.
//
// Check the input in fn: an actor without the right must not learn about it.
func (a *Access) Write(ctx context.Context, store *store.Store, actor Actor, project int64, right Right,
	fn func(*store.Queries) error) error {
	return a.WriteOwned(ctx, store, actor, 0, project, right, fn)
}

// WriteOwned is Write for an object that belongs to the user with id owner.
func (a *Access) WriteOwned(ctx context.Context, db *store.Store, actor Actor, owner, project int64, right Right,
	fn func(*store.Queries) error) error {
	if err := a.CheckOwned(actor, owner, project, right); err != nil {
		return err
	}
	return db.InRevokingTx(ctx, func(q *store.Queries) error {
		if err := a.RecheckOwned(q, actor, owner, project, right); err != nil {
			return err
		}
		return fn(q)
	})
}

// WriteSelf is Write for the actor's own account: it requires only that the actor
// is still authenticated, and a token with [AccountWrite].
func (a *Access) WriteSelf(ctx context.Context, db *store.Store, actor Actor, fn func(*store.Queries) error) error {
	return db.InRevokingTx(ctx, func(q *store.Queries) error {
		if actor.System == "" {
			if err := a.CheckSelf(q, actor); err != nil {
				return err
			}
		}
		return fn(q)
	})
}

// RecheckOwned reads the actor's rights again under lock, and checks them as CheckOwned does.
func (a *Access) RecheckOwned(q *store.Queries, actor Actor, owner, project int64, right Right) error {
	if actor.System != "" {
		return nil
	}
	if err := lockRights(q, project, right); err != nil {
		return err
	}
	now, err := reload(q, actor)
	if err != nil {
		return err
	}
	return a.CheckOwned(now, owner, project, right)
}

// lockRights takes the locks under which rights change: of the project for its
// roles, of the administrators for accounts.
func lockRights(q *store.Queries, project int64, right Right) error {
	if project != Platform {
		return q.LockProjectRow(project)
	}
	if object, _ := right.split(); object == "user" {
		return q.LockUsers()
	}
	return nil
}

// reload reads the actor's account and grants again.
func reload(q *store.Queries, actor Actor) (Actor, error) {
	u, err := q.LockUser(actor.User.ID)
	if err != nil || u.Disabled || u.SessionGeneration != actor.User.SessionGeneration {
		return Actor{}, unauthenticated(err)
	}
	if actor.Session != "" {
		if ok, err := q.Authenticates(actor.Session, q.Now()); err != nil || !ok {
			return Actor{}, unauthenticated(err)
		}
	}
	now, err := actorOf(q, u)
	return now.authenticatedAs(actor), err
}

// Granter reads the account of someone on whose behalf a transaction grants something,
// and checks under the locks of Write that they still have the right for it.
func (a *Access) Granter(q *store.Queries, user, project int64, right Right) (Actor, error) {
	if err := lockRights(q, project, right); err != nil {
		return Actor{}, err
	}
	u, err := q.LockUser(user)
	if err != nil {
		return Actor{}, err
	}
	actor, err := actorOf(q, u)
	if err == nil && (u.Disabled || !a.May(actor, project, right)) {
		err = CannotGive(u)
	}
	return actor, err
}

// CannotGive is the error for what was granted on behalf of someone who may no longer
// grant it.
func CannotGive(u models.User) *models.Error {
	return models.Forbidden("%s can no longer give this access.", u.Name)
}

// CheckSelf is the check of WriteSelf, for other transactions.
func (a *Access) CheckSelf(q *store.Queries, actor Actor) error {
	if _, err := reload(q, actor); err != nil {
		return err
	}
	return actor.CheckScope(AccountWrite)
}
