package handlers

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
	"weir/pool"
)

func (a rest) projectOperations(s section) {
	register(a, s, route{http.MethodGet, "/projects", 200, "list-projects", "List the projects that you may see"}, a.listProjects)
	register(a, s, route{http.MethodGet, "/projects.csv", 200, "download-projects", "Download the projects that you may see as CSV"}, a.downloadProjects)
	describeDownload(s, "/projects.csv")
	register(a, s, route{http.MethodPost, "/projects", 201, "create-project", "Create a project; for platform administrators"}, a.createProject)
	register(a, s, route{http.MethodGet, "/projects/{id}", 200, "get-project", "Show a project, its quota and what of it is promised and held"}, a.getProject)
	register(a, s, route{http.MethodPut, "/projects/{id}", 200, "update-project", "Replace a project's description, quota, period and launch parameters; for platform administrators"}, a.updateProject)
	register(a, s, route{http.MethodGet, "/projects/{id}/roles", 200, "list-roles", "List a project's roles"}, a.listRoles)
	register(a, s, route{http.MethodPost, "/projects/{id}/roles", 201, "create-role", "Add a role"}, a.createRole)
	register(a, s, route{http.MethodGet, "/projects/{id}/roles/{role}", 200, "get-role", "Show a role"}, a.getRole)
	register(a, s, route{http.MethodPut, "/projects/{id}/roles/{role}", 200, "update-role", "Replace a role"}, a.updateRole)
	register(a, s, route{http.MethodDelete, "/projects/{id}/roles/{role}", 204, "delete-role", "Delete a role that nobody has or had"}, a.deleteRole)
}

func (a rest) memberOperations(s section) {
	register(a, s, route{http.MethodGet, "/projects/{id}/members", 200, "list-members", "List a project's present members"}, a.listMembers)
	register(a, s, route{http.MethodPost, "/projects/{id}/members", 201, "add-member", "Give a person a role in a project"}, a.addMember)
	register(a, s, route{http.MethodGet, "/projects/{id}/members/{member}", 200, "get-member", "Show a member"}, a.getMember)
	register(a, s, route{http.MethodPut, "/projects/{id}/members/{member}", 200, "update-member", "Change a member's role or deadline; the address is ignored"}, a.updateMember)
	register(a, s, route{http.MethodDelete, "/projects/{id}/members/{member}", 204, "remove-member", "End a membership; its workspaces are stopped, its files stay"}, a.removeMember)
}

// PageOf asks for a page of what belongs to one resource.
type PageOf struct {
	ByID
	Paging
}

// CreateIn adds something to one resource.
type CreateIn[B any] struct {
	ByID
	Body B
}

// ProjectList asks for one page of projects.
type ProjectList struct {
	Paging
	pool.ProjectQuery
}

func (a rest) listProjects(ctx context.Context, in *ProjectList) (*Answer[List[Project]], error) {
	return listed(in.Paging, func(p pool.ProjectView) int64 { return p.ID }, func(page models.Page) ([]pool.ProjectView, error) {
		return a.Ledger.ListProjects(ctx, actorOf(ctx), in.ProjectQuery, page)
	}, func(p pool.ProjectView) Project { return projectOf(p, a.Store.Now()) })
}

func (a rest) downloadProjects(ctx context.Context, in *pool.ProjectQuery) (*huma.StreamResponse, error) {
	columns := []string{"id", "name", "starts_at", "ends_at", "members", "live_workspaces"}
	for _, of := range []string{"quota_", "promised_", "held_"} {
		for _, amount := range (models.Resources{}).Amounts() {
			columns = append(columns, of+amount.Name)
		}
	}
	return downloaded(a, ctx, "weir-projects.csv", columns, projectCells, func(p pool.ProjectView) int64 { return p.ID },
		func(ctx context.Context, page models.Page) ([]pool.ProjectView, error) {
			return a.Ledger.ListProjects(ctx, actorOf(ctx), *in, page)
		})
}

func projectCells(p pool.ProjectView) []string {
	ends := ""
	if p.EndsAt != nil {
		ends = p.EndsAt.UTC().Format(time.RFC3339)
	}
	cells := []string{strconv.FormatInt(p.ID, 10), p.Name, p.StartsAt.UTC().Format(time.RFC3339), ends, strconv.FormatInt(p.Members, 10), strconv.FormatInt(p.Live, 10)}
	for _, of := range []models.Resources{p.Quota, p.Promised, p.Held} {
		for _, amount := range of.Amounts() {
			cells = append(cells, strconv.FormatInt(amount.Value, 10))
		}
	}
	return cells
}

func (a rest) createProject(ctx context.Context, in *Create[pool.ProjectInput]) (*Created[Project], error) {
	p, err := a.Ledger.CreateProject(ctx, actorOf(ctx), in.Body)
	return created(p.Version, projectOf(pool.ProjectView{Project: p}, a.Store.Now()), err, "projects", p.ID)
}

func (a rest) getProject(ctx context.Context, in *ByID) (*Found[Project], error) {
	p, err := a.Ledger.Project(ctx, actorOf(ctx), in.ID)
	return found(p.Version, projectOf(p, a.Store.Now()), err)
}

func (a rest) updateProject(ctx context.Context, in *Update[pool.ProjectInput]) (*Found[Project], error) {
	var err error
	if in.Body.Version, err = in.version(); err != nil {
		return nil, err
	}
	if _, err := a.Ledger.UpdateProject(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, err
	}
	a.Wake()
	return a.getProject(ctx, &in.ByID)
}

// ByRole names a role of a project.
type ByRole struct {
	ByID
	Role int64 `path:"role" minimum:"1"`
}

// RoleUpdate replaces a role.
type RoleUpdate struct {
	ByRole
	IfMatch
	Body pool.RoleInput
}

func (a rest) listRoles(ctx context.Context, in *PageOf) (*Answer[List[Role]], error) {
	all, err := a.Ledger.Roles(ctx, actorOf(ctx), in.ID)
	return listedWhole(in.Paging, func(r pool.RoleView) int64 { return r.ID }, all, err, func(r pool.RoleView) Role { return roleOf(r.Role) })
}

func (a rest) createRole(ctx context.Context, in *CreateIn[pool.RoleInput]) (*Created[Role], error) {
	r, err := a.Ledger.CreateRole(ctx, actorOf(ctx), in.ID, in.Body)
	return created(r.Version, roleOf(r), err, "projects", in.ID, "roles", r.ID)
}

func (a rest) getRole(ctx context.Context, in *ByRole) (*Found[Role], error) {
	r, err := a.Ledger.Role(ctx, actorOf(ctx), in.ID, in.Role)
	return found(r.Version, roleOf(r), err)
}

func (a rest) updateRole(ctx context.Context, in *RoleUpdate) (*Found[Role], error) {
	var err error
	if in.Body.Version, err = in.version(); err != nil {
		return nil, err
	}
	r, err := a.Ledger.UpdateRole(ctx, actorOf(ctx), in.ID, in.Role, in.Body)
	return found(r.Version, roleOf(r), err)
}

func (a rest) deleteRole(ctx context.Context, in *ByRole) (*Nothing, error) {
	return nothing(a.Ledger.DeleteRole(ctx, actorOf(ctx), in.ID, in.Role))
}

// ByMember names a member of a project.
type ByMember struct {
	ByID
	Member int64 `path:"member" minimum:"1"`
}

// MemberUpdate changes a member.
type MemberUpdate struct {
	ByMember
	IfMatch
	Body pool.MemberInput
}

func (a rest) listMembers(ctx context.Context, in *PageOf) (*Answer[List[Member]], error) {
	return listed(in.Paging, func(m pool.MemberView) int64 { return m.ID }, func(page models.Page) ([]pool.MemberView, error) {
		return a.Ledger.Members(ctx, actorOf(ctx), in.ID, page)
	}, memberOf)
}

func (a rest) addMember(ctx context.Context, in *CreateIn[pool.MemberInput]) (*Created[Member], error) {
	m, err := a.Ledger.AddMember(ctx, actorOf(ctx), in.ID, in.Body)
	if err != nil {
		return nil, err
	}
	v, err := a.Ledger.Member(ctx, actorOf(ctx), in.ID, m.ID)
	return created(v.Version, memberOf(v), err, "projects", in.ID, "members", v.ID)
}

func (a rest) getMember(ctx context.Context, in *ByMember) (*Found[Member], error) {
	m, err := a.Ledger.Member(ctx, actorOf(ctx), in.ID, in.Member)
	return found(m.Version, memberOf(m), err)
}

func (a rest) updateMember(ctx context.Context, in *MemberUpdate) (*Found[Member], error) {
	var err error
	if in.Body.Version, err = in.version(); err != nil {
		return nil, err
	}
	if _, err := a.Ledger.UpdateMember(ctx, actorOf(ctx), in.ID, in.Member, in.Body); err != nil {
		return nil, err
	}
	return a.getMember(ctx, &in.ByMember)
}

func (a rest) removeMember(ctx context.Context, in *ByMember) (*Nothing, error) {
	return nothing(a.endMembership(ctx, in.ID, in.Member))
}
