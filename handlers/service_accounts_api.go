package handlers

import (
	"context"
	"net/http"

	"weir/models"
	"weir/pool/projects"
)

func (a rest) serviceAccountsOperations(s section) {
	register(a, s, route{http.MethodPost, "/projects/{id}/service-accounts", 201, "create-service-account",
		models.Say("Create a service account, a member of a project that is a program; it is listed, changed and removed as a member")}, a.createServiceAccount)
	register(a, s, route{http.MethodGet, "/projects/{id}/members/{member}/tokens", 200, "list-service-tokens",
		models.Say("List the access tokens of a service account, newest first")}, a.listServiceTokens)
	register(a, s, route{http.MethodPost, "/projects/{id}/members/{member}/tokens", 201, "create-service-token",
		models.Say("Create an access token for a service account; the secret is returned only once")}, a.createServiceToken)
	register(a, s, route{http.MethodDelete, "/projects/{id}/members/{member}/tokens/{token}", 204, "delete-service-token",
		models.Say("Revoke an access token of a service account")}, a.deleteServiceToken)
}

func (a rest) createServiceAccount(ctx context.Context, in *CreateIn[projects.ServiceAccountInput]) (*Created[Member], error) {
	m, err := a.Projects.CreateServiceAccount(ctx, actorOf(ctx), in.ID, in.Body)
	if err != nil {
		return nil, err
	}
	v, err := a.Projects.Member(ctx, actorOf(ctx), in.ID, m.ID)
	return created(v.Version, memberOf(v), err, "projects", in.ID, "members", v.ID)
}

// PageOfMember selects a page of a list of a member.
type PageOfMember struct {
	ByMember
	Paging
}

func (a rest) listServiceTokens(ctx context.Context, in *PageOfMember) (*Response[List[Token]], error) {
	all, err := a.Accounts.ServiceTokens(ctx, actorOf(ctx), in.ID, in.Member)
	return listedAll(in.Paging, func(t models.AccessToken) int64 { return t.ID }, all, err, tokenOf)
}

// CreateInMember adds something to a member.
type CreateInMember[B any] struct {
	ByMember
	Body B
}

func (a rest) createServiceToken(ctx context.Context, in *CreateInMember[TokenInput]) (*Created[NewToken], error) {
	input, err := in.Body.token()
	if err != nil {
		return nil, err
	}
	t, secret, err := a.Accounts.CreateServiceToken(ctx, actorOf(ctx), in.ID, in.Member, input)
	return created(0, NewToken{tokenOf(t), secret}, err, "projects", in.ID, "members", in.Member, "tokens", t.ID)
}

// ByServiceToken names a token of a service account.
type ByServiceToken struct {
	ByMember
	Token int64 `path:"token" minimum:"1" doc:"ID of the token"`
}

func (a rest) deleteServiceToken(ctx context.Context, in *ByServiceToken) (*Nothing, error) {
	return nil, a.Accounts.DeleteServiceToken(ctx, actorOf(ctx), in.ID, in.Member, in.Token)
}
