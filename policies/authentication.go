package policies

import (
	"cmp"
	"context"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
)

// Load reads an account and its grants. Unknown and disabled accounts are
// unauthenticated.
func (a *Accounts) Load(ctx context.Context, userID int64) (Actor, error) {
	actor, err := a.actors.Get(ctx, userID, func(ctx context.Context) (actor Actor, v store.Validity, err error) {
		q := a.store.Read(ctx)
		u, err := q.User(userID)
		if err != nil || u.Disabled {
			return actor, v, unauthenticated(err)
		}
		if actor, err = actorOf(q, u); err != nil {
			return actor, v, err
		}
		actor.SecondFactorDue, err = secondFactorDue(q, u)
		v = actor.Validity()
		v.Keys = append(v.Keys, store.SignInPolicyKey)
		return actor, v, err
	})
	actor.At = a.store.Now()
	return actor, err
}

// useRecorded is how old the recorded use of a session becomes.
const useRecorded = 5 * time.Minute

// Session finds an unexpired portal session by its hash, and records its use now and then.
func (a *Accounts) Session(ctx context.Context, hash string) (models.Session, error) {
	return a.sessions.Get(ctx, hash, func(ctx context.Context) (s models.Session, v store.Validity, err error) {
		now := a.store.Now()
		if s, err = a.store.Read(ctx).SessionByToken(hash, now); err != nil {
			return s, v, err
		}
		v = store.Validity{Keys: []string{store.SessionKey(hash)}, Until: s.ExpiresAt}
		used := cmp.Or(s.UsedAt, s.BeganAt)
		if used == nil {
			return s, v, nil
		}
		if now.Sub(*used) >= useRecorded {
			used = &now
			a.recordUse(ctx, "session", func(q *store.Queries) error { return q.TouchSession(hash, now) })
		}
		next := used.Add(useRecorded)
		v.EndAt(&next)
		return s, v, nil
	})
}

// recordUse writes when something was used. It only informs: a database that cannot be
// written refuses nobody.
func (a *Accounts) recordUse(ctx context.Context, what string, write func(*store.Queries) error) {
	if err := a.store.InTx(ctx, write); err != nil {
		a.store.Log().WarnContext(ctx, "cannot record the use", "of", what, "err", err)
	}
}

// token finds an unexpired access token by its hash and records its use, at most
// once a minute.
func (a *Accounts) token(ctx context.Context, hash string) (models.AccessToken, error) {
	return a.tokens.Get(ctx, hash, func(ctx context.Context) (t models.AccessToken, v store.Validity, err error) {
		now := a.store.Now()
		if t, err = a.store.Read(ctx).AccessTokenByHash(hash, now); err != nil {
			return t, v, err
		}
		t.Scopes = append([]models.TokenScope{}, t.Scopes...) // never nil, which is no limit
		if t.LastUsedAt == nil || now.Sub(*t.LastUsedAt) > time.Minute {
			t.LastUsedAt, t.LastUsedFrom = &now, cmp.Or(ClientAddress(ctx), t.LastUsedFrom)
			a.recordUse(ctx, "access token", func(q *store.Queries) error { return q.TouchAccessToken(t.ID, now, t.LastUsedFrom) })
		}
		nextUse := t.LastUsedAt.Add(time.Minute)
		v = store.Validity{Keys: []string{store.RevocationKey("user", t.UserID)}, Until: t.ExpiresAt}
		v.EndAt(&nextUse)
		return t, v, err
	})
}

// RefreshActor returns the actor with its present grants. It returns an error when the
// account is disabled or the session or token has ended.
func (a *Accounts) RefreshActor(ctx context.Context, actor Actor) (Actor, error) {
	var err error
	switch {
	case actor.Session == "":
	case actor.Via == ViaSession:
		_, err = a.Session(ctx, actor.Session)
	default:
		var t models.AccessToken
		t, err = a.token(ctx, actor.Session)
		actor.Scopes, actor.Expires = t.Scopes, t.ExpiresAt
	}
	if err != nil {
		return Actor{}, unauthenticated(err)
	}
	now, err := a.Load(ctx, actor.User.ID)
	now = now.authenticatedAs(actor)
	if err == nil && (now.User.SessionGeneration != actor.User.SessionGeneration || now.MustEnroll()) {
		return Actor{}, unauthenticated(nil)
	}
	return now, err
}

// ownerOf finds the owner of what a topic is about: "workspace:ID", "reservation:ID",
// "run:ID", "run-output:ID" or "deployment:ID".
func (a *Accounts) ownerOf(ctx context.Context, topic string, id int64) (owner, error) {
	return a.owners.Get(ctx, topic, func(ctx context.Context) (owner, store.Validity, error) {
		if strings.HasPrefix(topic, "reservation:") {
			r, err := a.store.Read(ctx).Reservation(store.AllProjects, id)
			return owner{r.UserID, r.ProjectID}, store.Validity{}, err
		}
		if strings.HasPrefix(topic, "run:") || strings.HasPrefix(topic, "run-output:") {
			r, err := a.store.Read(ctx).Run(store.AllProjects, id)
			return owner{r.UserID, r.ProjectID}, store.Validity{}, err
		}
		if strings.HasPrefix(topic, "deployment:") {
			d, err := a.store.Read(ctx).Deployment(store.AllProjects, id)
			return owner{d.UserID, d.ProjectID}, store.Validity{}, err
		}
		w, err := a.store.Read(ctx).Workspace(store.AllProjects, id)
		return owner{w.UserID, w.ProjectID}, store.Validity{}, err
	})
}
