package policies

import (
	"cmp"
	"context"
	"slices"

	"weir/models"
	"weir/models/store"
)

// Sessions lists the sessions of the actor's account that have not ended, the one that
// began last first.
func (a *Accounts) Sessions(ctx context.Context, actor Actor) ([]models.Session, error) {
	if err := actor.CheckUser(); err != nil {
		return nil, err
	}
	return a.store.Read(ctx).SessionsOf(actor.User.ID, actor.User.SessionGeneration)
}

// EndSession ends another session of the actor's account, with the visits to workspaces
// that it began.
func (a *Accounts) EndSession(ctx context.Context, actor Actor, id int64) error {
	if err := checkAccountWrite(actor); err != nil {
		return err
	}
	return a.access.WriteSelf(ctx, a.store, actor, func(q *store.Queries) error {
		list, err := q.SessionsOf(actor.User.ID, actor.User.SessionGeneration)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(s models.Session) bool { return s.ID() == id })
		if i < 0 {
			return models.NotFound("session")
		}
		if list[i].Token == actor.Session {
			return models.Conflict("This is the session that you use. Sign out instead.")
		}
		if err := q.DeleteSession(list[i].Token); err != nil {
			return err
		}
		ended := map[string]any{"address": list[i].Address}
		return actor.Audit(q, Change{Action: "end-session", Object: "account", ID: actor.User.ID, Before: ended})
	})
}

// EndSessions ends all sessions of the actor's account. The caller has the present one
// continue.
func (a *Accounts) EndSessions(ctx context.Context, actor Actor) error {
	if err := checkAccountWrite(actor); err != nil {
		return err
	}
	return a.access.WriteSelf(ctx, a.store, actor, func(q *store.Queries) error {
		if err := endSessions(q, actor.User.ID); err != nil {
			return err
		}
		return actor.Audit(q, Change{Action: "end-sessions", Object: "account", ID: actor.User.ID})
	})
}

func endSessions(q *store.Queries, user int64) error {
	u, err := q.User(user)
	if err != nil {
		return err
	}
	u.SessionGeneration++
	return q.UpdateUser(&u)
}

// SelfChange is what people change of their own accounts. Version is the one that was read;
// 0 accepts any.
type SelfChange struct {
	Name     string  `json:"name" maxLength:"100" doc:"display name"`
	TimeZone *string `json:"time_zone,omitempty" maxLength:"100" doc:"time zone in which pages and emails show times, such as Europe/Berlin; empty: that of the browser, and UTC; absent: unchanged"`

	Version int64 `json:"-"`
}

// UpdateSelf changes the actor's own account.
func (a *Accounts) UpdateSelf(ctx context.Context, actor Actor, in SelfChange) (u models.User, err error) {
	if err := checkAccountWrite(actor); err != nil {
		return u, err
	}
	var problems models.Problems
	in.Name = models.CheckName("name", in.Name, &problems)
	if in.TimeZone != nil {
		models.CheckTimeZone("time_zone", *in.TimeZone, &problems)
	}
	if err := problems.Err(); err != nil {
		return u, err
	}
	err = a.access.WriteSelf(ctx, a.store, actor, func(q *store.Queries) error {
		if u, err = q.User(actor.User.ID); err != nil {
			return err
		}
		if err := models.CheckVersion("account", in.Version, u.Version); err != nil {
			return err
		}
		if u.IsService() {
			return models.Conflict("A service account has no platform role, and its name cannot be changed.")
		}
		before := u
		u.Name, u.TimeZone = in.Name, *cmp.Or(in.TimeZone, &before.TimeZone)
		if err := q.UpdateUser(&u); err != nil {
			return err
		}
		return actor.Audit(q, Change{Action: "update", Object: "account", ID: u.ID, Before: auditUser(before), After: auditUser(u)})
	})
	return u, err
}
