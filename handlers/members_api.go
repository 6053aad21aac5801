package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
)

func (a rest) membersOperations(s section) {
	register(a, s, route{http.MethodGet, "/projects/{id}/members.csv", 200, "download-members",
		models.Say("Export a project's current members as CSV, in the import format")}, a.downloadMembers)
	describeDownload(s, "/projects/{id}/members.csv", "text/csv")
	register(a, s, route{http.MethodGet, "/projects/{id}/members", 200, "list-members", models.Say("List a project's current members")},
		a.listMembers)
	register(a, s, route{http.MethodPost, "/projects/{id}/members", 201, "add-member", models.Say("Add a member to a project")}, a.addMember)
	register(a, s, route{http.MethodGet, "/projects/{id}/members/{member}", 200, "get-member", models.Say("Get a member")}, a.getMember)
	register(a, s, route{http.MethodPut, "/projects/{id}/members/{member}", 200, "update-member",
		models.Say("Update a member's role or end date; the email address is ignored")}, a.updateMember)
	register(a, s, route{http.MethodDelete, "/projects/{id}/members/{member}", 204, "remove-member",
		models.Say("Remove a member; stops their workspaces and keeps their files")}, a.removeMember)
	register(a, s, route{http.MethodPost, "/projects/{id}/members/import", 200, "import-members",
		models.Say("Import members from CSV atomically, or preview the import")}, a.importMembers)
}

// Member is a person's place in a project.
type Member struct {
	ID         int64            `json:"id"`
	ProjectID  int64            `json:"project_id"`
	UserID     int64            `json:"user_id"`
	Name       string           `json:"name"`
	Email      string           `json:"email" doc:"email address; of a service account its identifier"`
	Kind       string           `json:"kind" enum:"person,service" doc:"person, or service account"`
	Confirmed  bool             `json:"email_confirmed" doc:"the person is known to have the email address"`
	RoleID     int64            `json:"role_id"`
	Role       string           `json:"role"`
	Permission string           `json:"permission" enum:"owner,manager,member,viewer,custom"`
	Limit      models.Resources `json:"limit" doc:"limit of the role"`
	InUse      models.Resources `json:"in_use" doc:"resources in use by the member"`
	Until      *time.Time       `json:"until,omitempty" doc:"end of the membership"`
	CreatedAt  time.Time        `json:"created_at"`

	Department string    `json:"department,omitempty"`
	JoinedAt   time.Time `json:"joined_at" doc:"date of joining, at midnight UTC"`
}

func memberOf(m projects.MemberView) Member {
	return Member{ID: m.ID, ProjectID: m.ProjectID, UserID: m.UserID, Name: m.UserName, Email: m.UserEmail, Kind: kindOf(m.UserEmail),
		Confirmed: !m.UserUnconfirmed, RoleID: m.RoleID, Role: m.RoleName, Permission: m.Permission, Limit: m.Limit, InUse: m.InUse,
		Until: utc(m.Until), CreatedAt: m.CreatedAt.UTC(),
		Department: m.Department, JoinedAt: m.JoinedAt.UTC()}
}

// kindOf is the kind of the account with an email address.
func kindOf(email string) string {
	if models.IsServiceAccount(email) {
		return "service"
	}
	return "person"
}

// ByMember names a member of a project.
type ByMember struct {
	ByID
	Member int64 `path:"member" minimum:"1" doc:"ID of the membership"`
}

// MemberUpdate changes a member.
type MemberUpdate struct {
	ByMember
	IfMatch
	Body projects.MemberInput
}

func (a rest) listMembers(ctx context.Context, in *PageOf) (*Response[List[Member]], error) {
	return listed(in.Paging, func(m projects.MemberView) int64 { return m.ID }, func(page store.Page) ([]projects.MemberView, error) {
		return a.Projects.Members(ctx, actorOf(ctx), in.ID, page)
	}, memberOf)
}

func (a rest) addMember(ctx context.Context, in *CreateIn[projects.MemberInput]) (*Created[Member], error) {
	m, err := a.Projects.AddMember(ctx, actorOf(ctx), in.ID, in.Body)
	if err != nil {
		return nil, err
	}
	v, err := a.Projects.Member(ctx, actorOf(ctx), in.ID, m.ID)
	return created(v.Version, memberOf(v), err, "projects", in.ID, "members", v.ID)
}

func (a rest) getMember(ctx context.Context, in *ByMember) (*Found[Member], error) {
	m, err := a.Projects.Member(ctx, actorOf(ctx), in.ID, in.Member)
	return found(m.Version, memberOf(m), err)
}

func (a rest) updateMember(ctx context.Context, in *MemberUpdate) (*Found[Member], error) {
	in.Body.Version = in.version
	if _, err := a.Projects.UpdateMember(ctx, actorOf(ctx), in.ID, in.Member, in.Body); err != nil {
		return nil, err
	}
	return a.getMember(ctx, &in.ByMember)
}

func (a rest) removeMember(ctx context.Context, in *ByMember) (*Nothing, error) {
	return nil, a.Projects.RemoveMember(ctx, actorOf(ctx), in.ID, in.Member)
}

func (a rest) downloadMembers(ctx context.Context, in *ByID) (*huma.StreamResponse, error) {
	return downloaded(a, ctx, "weir-members.csv", projects.MemberColumns, projects.MemberCells,
		byID(func(m projects.MemberView) int64 { return m.ID }),
		func(ctx context.Context, page store.Page) ([]projects.MemberView, error) {
			return a.Projects.Members(ctx, actorOf(ctx), in.ID, page)
		})
}

func (a rest) importMembers(ctx context.Context, in *CreateIn[TableInput]) (*Response[ImportReport], error) {
	t, err := a.membersImport(ctx, in.ID)
	return imported(ctx, t, in.Body, err)
}
