package policies

import (
	"cmp"
	"context"
	"slices"

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
	_, refused, err := a.Recheck(q, Needed{actor, owner, project, right})
	return cmp.Or(err, refused[0])
}

// Needed is a right that an actor needs, as for CheckOwned.
type Needed struct {
	Actor          Actor
	Owner, Project int64
	Right          Right
}

// Recheck reads the rights of actors again under lock, and checks each that is needed as
// CheckOwned does. now and refused have an element for each: the actor as of now, and an
// error. With an err they say nothing.
func (a *Access) Recheck(q *store.Queries, needed ...Needed) (now []Actor, refused []error, err error) {
	actors := models.Map(needed, func(r Needed) Actor { return r.Actor })
	if err := lockRights(q, needed...); err != nil {
		return actors, make([]error, len(needed)), err
	}
	if now, refused, err = reload(q, actors...); err != nil {
		return now, refused, err
	}
	for i, r := range needed {
		if refused[i] == nil {
			refused[i] = a.CheckOwned(now[i], r.Owner, r.Project, r.Right)
		}
	}
	return now, refused, nil
}

// lockRights takes the locks under which the rights of users change: of projects for their
// roles, of the administrators for accounts.
func lockRights(q *store.Queries, needed ...Needed) error {
	var projects []int64
	accounts := false
	for _, r := range needed {
		if r.Actor.System != "" {
			continue
		}
		if r.Project != Platform {
			projects = append(projects, r.Project)
		} else if object, _ := r.Right.split(); object == "user" {
			accounts = true
		}
	}
	if len(projects) > 0 {
		if err := q.LockProjectRows(projects...); err != nil {
			return err
		}
	}
	if accounts {
		return q.LockUsers()
	}
	return nil
}

// reload reads the accounts and grants of actors again. now and refused have an element for
// each: the actor as of now, and the error of one who is no longer authenticated.
func reload(q *store.Queries, actors ...Actor) (now []Actor, refused []error, err error) {
	now, refused = slices.Clone(actors), make([]error, len(actors))
	var ids []int64
	var sessions []string
	for _, a := range actors {
		if a.System == "" {
			ids = append(ids, a.User.ID)
		}
		if a.Session != "" {
			sessions = append(sessions, a.Session)
		}
	}
	if len(ids) == 0 {
		return now, refused, nil
	}
	accounts, err := q.LockUserRows(ids...)
	if err != nil {
		return now, refused, err
	}
	var authenticated []string
	if len(sessions) > 0 {
		if authenticated, err = q.Authenticated(q.Now(), sessions...); err != nil {
			return now, refused, err
		}
	}
	memberships, err := q.MembershipsByUser(q.Now(), ids...)
	if err != nil {
		return now, refused, err
	}
	for i, a := range actors {
		if a.System != "" {
			continue
		}
		u, ok := a.account(accounts)
		if !ok || a.Session != "" && !slices.Contains(authenticated, a.Session) {
			refused[i] = unauthenticated(nil)
			continue
		}
		now[i] = Actor{User: u, At: q.Now(), Grants: GrantsOf(memberships[u.ID])}.authenticatedAs(a)
	}
	return now, refused, nil
}

// account is the actor's among accounts; false unless the actor is still signed in to it.
func (a Actor) account(accounts []models.User) (u models.User, ok bool) {
	i := slices.IndexFunc(accounts, func(u models.User) bool { return u.ID == a.User.ID })
	if i < 0 {
		return u, false
	}
	u = accounts[i]
	return u, !u.Disabled && u.SessionGeneration == a.User.SessionGeneration
}

// Granter reads the account of someone on whose behalf a transaction grants something,
// and checks under the locks of Write that they still have the right for it.
func (a *Access) Granter(q *store.Queries, user, project int64, right Right) (Actor, error) {
	if err := lockRights(q, Needed{Project: project, Right: right}); err != nil {
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
	_, refused, err := reload(q, actor)
	if err := cmp.Or(err, refused[0]); err != nil {
		return err
	}
	return actor.CheckScope(AccountWrite)
}
