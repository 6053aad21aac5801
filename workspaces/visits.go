package workspaces

import (
	"cmp"
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

const (
	openLifetime  = 30 * time.Second // of the single-use token in the address
	visitLifetime = 12 * time.Hour   // of the cookie at the workspace's origin
)

// OpenInput is the page of a workspace to open.
type OpenInput struct {
	Path string `json:"-" query:"path" maxLength:"2000" doc:"path of the page to open; empty: the start page"`
}

func (in OpenInput) check() error {
	if in.Path != "" && !models.IsPagePath(in.Path) {
		return models.Invalid("path", "must start with a single /, be percent-encoded and have at most %d characters", models.MaxPagePath)
	}
	return nil
}

// Open returns a single-use token with which the browser of the actor opens a page of the
// actor's running workspace. The token is bound to the user, the workspace and
// the portal session or access token of the request.
func (s *Service) Open(ctx context.Context, actor policies.Actor, id int64, in OpenInput) (secret string, err error) {
	if err := in.check(); err != nil {
		return "", err
	}
	w, err := s.authorizeOwner(ctx, actor, id,
		models.Forbidden("Only its owner can open a workspace, because actions in it are made as the owner."))
	if err != nil {
		return "", err
	}
	if err := checkRunning(w.State); err != nil {
		return "", err
	}
	secret = policies.NewSecret()
	return secret, s.access.WriteOwned(ctx, s.store, actor, w.UserID, w.ProjectID, policies.WorkspaceOpen, func(q *store.Queries) error {
		return q.PutOneTimeToken(models.OneTimeToken{Hash: policies.HashSecret(secret), Purpose: "open", UserID: &w.UserID,
			WorkspaceID: &w.ID, Session: actor.Session, ExpiresAt: q.Now().Add(openLifetime)})
	})
}

// ReadLog returns the last lines that a workspace has printed, or printed before it failed; empty if
// it has printed nothing. Only its owner may read them, because programs print keys.
func (s *Service) ReadLog(ctx context.Context, actor policies.Actor, id int64) (models.Workspace, string, error) {
	w, err := s.authorizeOwner(ctx, actor, id,
		models.Forbidden("Only its owner can read the log of a workspace, because programs print keys."))
	if err != nil {
		return w, "", err
	}
	if w.State.Ended() || len(w.RuntimeState) == 0 || s.Logs == nil {
		return w, w.LogTail, nil
	}
	log, err := s.Logs.Log(ctx, w.RuntimeState)
	return w, log, err
}

// authorizeOwner finds a workspace that the actor may see, with a token for what is done in it.
// Others than its owner get the refusal.
func (s *Service) authorizeOwner(ctx context.Context, actor policies.Actor, id int64, refusal error) (models.Workspace, error) {
	w, err := s.authorize(ctx, actor, id, policies.WorkspaceRead)
	if err == nil {
		err = actor.CheckScope(policies.WorkspaceOpen)
	}
	if err == nil && !s.canOpen(actor, w) {
		err = refusal
	}
	return w, err
}

func checkRunning(state models.WorkspaceState) error {
	switch state {
	case models.StateRunning:
		return nil
	case models.StateRequested, models.StateQueued:
		return models.Conflict("This workspace is queued. Its page shows the reason and the estimate.")
	case models.StateStarting:
		return models.Conflict("This workspace is starting. Try again in a moment.")
	default:
		return models.Conflict("This workspace is %s. Launch it again from the portal.", state.Words())
	}
}

// Redeem exchanges a token of Open for a visit. It succeeds once.
func (s *Service) Redeem(ctx context.Context, id int64, token string) (v models.VisitCookie, err error) {
	v.Secret = policies.NewSecret()
	err = s.store.InTx(ctx, func(q *store.Queries) error {
		now := q.Now()
		t, err := q.TakeOneTimeToken(policies.HashSecret(token), "open", now)
		if err != nil {
			return err
		}
		if t.WorkspaceID == nil || t.UserID == nil || *t.WorkspaceID != id {
			return models.NotFound("link")
		}
		w, err := q.Workspace(store.AllProjects, id)
		if err != nil {
			return err
		}
		u, err := q.User(*t.UserID)
		if err != nil {
			return err
		}
		session, err := q.SessionByToken(t.Session, now)
		if err = models.IgnoreNotFound(err); err != nil { // an access token began it, or a session that has ended: then it admits nobody
			return err
		}
		// All sessions of the account were ended. Those of an earlier version do not say whose they are.
		if session.UserID != nil && session.Generation != u.SessionGeneration {
			return models.NotFound("link")
		}
		v.Expires, v.Path = now.Add(visitLifetime), cmp.Or(parameter(w.Target, "path"), "/")
		return q.PutVisit(models.Visit{Hash: policies.HashSecret(v.Secret), WorkspaceID: id, UserID: u.ID,
			SessionGeneration: u.SessionGeneration, Session: t.Session, ExpiresAt: v.Expires})
	})
	return v, err
}

// Leave ends a visit and its connections, on all servers. An invalid secret ends nothing.
func (s *Service) Leave(ctx context.Context, id int64, secret string) error {
	return s.store.InRevokingTx(ctx, func(q *store.Queries) error { return q.EndVisit(policies.HashSecret(secret), id) })
}

// AdmitVisit returns the endpoint of the notebook for a visit. For an invalid or
// expired visit the error is of kind unauthenticated.
func (s *Service) AdmitVisit(ctx context.Context, id int64, secret string) (store.Admission, error) {
	hash := policies.HashSecret(secret)
	return s.admit(ctx, admissionKey{visit: hash, workspace: id}, func(ctx context.Context) (store.Admission, error) {
		a, err := s.store.Read(ctx).AdmitVisit(hash, id, s.store.Now())
		if models.KindOf(err) == models.KindNotFound {
			err = &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("Open this workspace from the portal.")}
		}
		return a, err
	})
}

// AdmitActor returns the endpoint of the actor's own notebook. For a workspace of
// another user the error is of kind not_found.
func (s *Service) AdmitActor(ctx context.Context, actor policies.Actor, id int64) (store.Admission, error) {
	err := actor.CheckUser()
	if err == nil {
		err = actor.CheckScope(policies.WorkspaceOpen)
	}
	if err != nil {
		return store.Admission{}, err
	}
	a, err := s.admit(ctx, admissionKey{user: actor.User.ID, workspace: id}, func(ctx context.Context) (store.Admission, error) {
		return s.store.Read(ctx).AdmitOwner(actor.User.ID, id, s.store.Now())
	})
	for _, right := range []policies.Right{policies.WorkspaceRead, policies.WorkspaceOpen} {
		if err == nil && !s.access.MayOwned(actor, a.UserID, a.ProjectID, right) {
			err = models.NotFound("workspace")
		}
	}
	a.Session = actor.Session
	return a, err
}

// admit caches the admissions to running workspaces, which depend on the key alone.
func (s *Service) admit(ctx context.Context, key admissionKey, read func(context.Context) (store.Admission, error)) (
	store.Admission, error) {
	return s.admissions.Get(ctx, key, func(ctx context.Context) (store.Admission, store.Validity, error) {
		a, err := read(ctx)
		if err == nil {
			err = checkRunning(a.State)
		}
		return a, a.Validity(), err
	})
}
