package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/projects"
)

func (a rest) invitationsOperations(s section) {
	register(a, s, route{http.MethodGet, "/invitations", 200, "list-invitations",
		models.Say("List all invitations, newest first; requires platform administrator or auditor")}, a.listInvitations)
	register(a, s, route{http.MethodPost, "/invitations", 201, "invite-users",
		models.Say("Invite people to the platform; the links are returned only once. Requires platform administrator")}, a.inviteUsers, http.StatusTooManyRequests)
	register(a, s, route{http.MethodGet, "/invitations/{id}", 200, "get-invitation", models.Say("Get an invitation")}, a.getInvitation)
	register(a, s, route{http.MethodDelete, "/invitations/{id}", 204, "revoke-invitation", models.Say("Revoke a pending invitation")},
		a.revokeInvitation)
	register(a, s, route{http.MethodGet, "/projects/{id}/invitations", 200, "list-project-invitations",
		models.Say("List the invitations to a project, newest first")}, a.listProjectInvitations)
	register(a, s, route{http.MethodPost, "/projects/{id}/invitations", 201, "invite-members",
		models.Say("Invite people to a project with a role; the links are returned only once")}, a.inviteMembers, http.StatusTooManyRequests)
	registerPublic(a, s, route{http.MethodPost, "/invitations/accept", 200, "accept-invitation",
		models.Say("Accept an invitation: without authentication with a new account, otherwise with the account that has the invited address")}, a.acceptInvitation)
}

// Invitation is an invitation without its link.
type Invitation struct {
	ID        int64      `json:"id"`
	Email     string     `json:"email"`
	State     string     `json:"state" enum:"pending,accepted,expired,revoked"`
	ProjectID *int64     `json:"project_id,omitempty" doc:"absent for an invitation to the platform"`
	Project   string     `json:"project,omitempty"`
	RoleID    *int64     `json:"role_id,omitempty"`
	Role      string     `json:"role,omitempty" doc:"absent if the role was deleted"`
	Admin     bool       `json:"admin"`
	Auditor   bool       `json:"auditor"`
	InviterID int64      `json:"inviter_id"`
	Inviter   string     `json:"inviter" doc:"name of the inviter"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt time.Time  `json:"expires_at"`
	Accepted  *time.Time `json:"accepted_at,omitempty"`
	Revoked   *time.Time `json:"revoked_at,omitempty"`
	Problem   string     `json:"problem,omitempty" doc:"why the last attempt to accept it was refused"`
}

func (a rest) invitationOf(i models.InvitationView) Invitation {
	return Invitation{ID: i.ID, Email: i.Email, State: string(i.State(a.Store.Now())), ProjectID: i.ProjectID, Project: i.Project,
		RoleID: i.RoleID, Role: i.Role, Admin: i.Admin, Auditor: i.Auditor, InviterID: i.InviterID, Inviter: i.InviterName,
		CreatedAt: i.CreatedAt.UTC(), ExpiresAt: i.ExpiresAt.UTC(), Accepted: utc(i.AcceptedAt), Revoked: utc(i.RevokedAt),
		Problem: i.Problem.String()}
}

// InvitationURL is a new invitation's link.
type InvitationURL struct {
	ID        int64     `json:"id" doc:"invitation ID"`
	Email     string    `json:"email"`
	URL       string    `json:"url,omitempty" doc:"one-time link, returned only once; absent if it is only sent by email"`
	ExpiresAt time.Time `json:"expires_at"`
}

// InvitationURLs are the links of new invitations, in the order of the addresses.
type InvitationURLs struct {
	Items []InvitationURL `json:"items"`
}

func (a rest) invited(ctx context.Context, list []projects.Invited, err error) (*Response[InvitationURLs], error) {
	return &Response[InvitationURLs]{InvitationURLs{a.invitationURLs(ctx, list)}}, err
}

func (a rest) invitationURLs(ctx context.Context, list []projects.Invited) []InvitationURL {
	portal := a.portalURL(httpRequestOf(ctx))
	return models.Map(list, func(i projects.Invited) InvitationURL {
		return InvitationURL{i.ID, i.Email, i.Link.URL(portal), i.ExpiresAt.UTC()}
	})
}

func (a rest) inviteUsers(ctx context.Context, in *Create[projects.InvitationInput]) (*Response[InvitationURLs], error) {
	list, err := a.Invitations.Invite(ctx, actorOf(ctx), policies.Platform, in.Body)
	return a.invited(ctx, list, err)
}

func (a rest) inviteMembers(ctx context.Context, in *CreateIn[projects.InvitationInput]) (*Response[InvitationURLs], error) {
	list, err := a.Invitations.Invite(ctx, actorOf(ctx), in.ID, in.Body)
	return a.invited(ctx, list, err)
}

func (a rest) listInvitations(ctx context.Context, in *Paging) (*Response[List[Invitation]], error) {
	return a.invitationsOf(ctx, *in, policies.Platform)
}

func (a rest) listProjectInvitations(ctx context.Context, in *PageOf) (*Response[List[Invitation]], error) {
	return a.invitationsOf(ctx, in.Paging, in.ID)
}

func (a rest) invitationsOf(ctx context.Context, in Paging, project int64) (*Response[List[Invitation]], error) {
	return listed(in, func(i models.InvitationView) int64 { return i.ID }, func(page store.Page) ([]models.InvitationView, error) {
		return a.Invitations.List(ctx, actorOf(ctx), project, page)
	}, a.invitationOf)
}

func (a rest) getInvitation(ctx context.Context, in *ByID) (*Response[Invitation], error) {
	i, err := a.Invitations.Invitation(ctx, actorOf(ctx), in.ID)
	return &Response[Invitation]{a.invitationOf(i)}, err
}

func (a rest) revokeInvitation(ctx context.Context, in *ByID) (*Nothing, error) {
	_, err := a.Invitations.Revoke(ctx, actorOf(ctx), in.ID)
	return nil, err
}

// Acceptance accepts an invitation.
type Acceptance struct {
	Token    string `json:"token" maxLength:"200" doc:"the secret in the link"`
	Name     string `json:"name,omitempty" maxLength:"100" doc:"display name of a new account"`
	Password string `json:"password,omitempty" maxLength:"1000" doc:"password of a new account; at least 10 characters"`
}

func (a rest) acceptInvitation(ctx context.Context, in *Create[Acceptance]) (*Response[User], error) {
	u, err := a.Invitations.Accept(ctx, actorOf(ctx), in.Body.Token, policies.NewUser{Name: in.Body.Name, Password: in.Body.Password})
	return &Response[User]{userOf(u)}, err
}
