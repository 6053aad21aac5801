package policies

import (
	"context"
	"slices"

	"weir/models"
	"weir/models/store"
)

// ServiceAccount is a member of a project that is a service account, for those who
// manage the members.
func (a *Accounts) ServiceAccount(ctx context.Context, actor Actor, project, member int64) (models.MemberView, error) {
	if err := a.access.Check(actor, project, MemberWrite); err != nil {
		return models.MemberView{}, err
	}
	return serviceAccount(a.store.Read(ctx), project, member)
}

func serviceAccount(q *store.Queries, project, member int64) (models.MemberView, error) {
	m, err := q.MemberView(store.AllProjects, project, member)
	if err == nil && !models.IsServiceAccount(m.UserEmail) {
		err = models.NotFound("service account")
	}
	return m, err
}

// ServiceTokens lists the tokens of a service account, newest first.
func (a *Accounts) ServiceTokens(ctx context.Context, actor Actor, project, member int64) ([]models.AccessToken, error) {
	m, err := a.ServiceAccount(ctx, actor, project, member)
	if err != nil {
		return nil, err
	}
	return a.store.Read(ctx).AccessTokens(m.UserID)
}

// CreateServiceToken creates a token for a service account and returns its secret, which
// is not stored. The actor must have all permissions of the account's role.
func (a *Accounts) CreateServiceToken(ctx context.Context, actor Actor, project, member int64, in NewToken) (
	t models.AccessToken, secret string, err error) {
	if err := a.access.Check(actor, project, MemberWrite); err != nil {
		return t, "", err
	}
	if err := in.Check(); err != nil {
		return t, "", err
	}
	if slices.Contains(in.Scopes, models.ScopeAdmin) {
		return t, "", models.Invalid("scopes", "must not contain admin for a service account")
	}
	err = a.changeServiceTokens(ctx, actor, project, member, func(q *store.Queries, m models.MemberView) error {
		t, secret, err = newToken(q, actor, m.UserID, project, in)
		return err
	})
	return t, secret, err
}

// DeleteServiceToken revokes a token of a service account.
func (a *Accounts) DeleteServiceToken(ctx context.Context, actor Actor, project, member, id int64) error {
	return a.changeServiceTokens(ctx, actor, project, member, func(q *store.Queries, m models.MemberView) error {
		return deleteToken(q, actor, m.UserID, project, id)
	})
}

// changeServiceTokens runs fn in a transaction of an actor who manages the members and
// has all permissions of the service account.
func (a *Accounts) changeServiceTokens(ctx context.Context, actor Actor, project, member int64,
	fn func(*store.Queries, models.MemberView) error) error {
	return a.access.Write(ctx, a.store, actor, project, MemberWrite, func(q *store.Queries) error {
		m, err := serviceAccount(q, project, member)
		if err != nil {
			return err
		}
		subject := models.Say("%s (role %s)", m.UserName, m.RoleName)
		if err := a.access.CheckGrant(q, actor, project, "role_id", subject, m.Permits()); err != nil {
			return err
		}
		return fn(q, m)
	})
}
