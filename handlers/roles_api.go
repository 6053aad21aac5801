package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/pool/projects"
)

func (a rest) rolesOperations(s section) {
	register(a, s, route{http.MethodGet, "/projects/{id}/roles", 200, "list-roles", models.Say("List a project's roles")}, a.listRoles)
	register(a, s, route{http.MethodPost, "/projects/{id}/roles", 201, "create-role", models.Say("Create a role")}, a.createRole)
	register(a, s, route{http.MethodGet, "/projects/{id}/roles/{role}", 200, "get-role", models.Say("Get a role")}, a.getRole)
	register(a, s, route{http.MethodPut, "/projects/{id}/roles/{role}", 200, "update-role", models.Say("Update a role")}, a.updateRole)
	register(a, s, route{http.MethodDelete, "/projects/{id}/roles/{role}", 204, "delete-role", models.Say("Delete a role without members")},
		a.deleteRole)
}

// Role is a position in a project.
type Role struct {
	ID          int64            `json:"id"`
	ProjectID   int64            `json:"project_id"`
	Name        string           `json:"name"`
	Permission  string           `json:"permission" enum:"owner,manager,member,viewer,custom"`
	Permissions []string         `json:"permissions" doc:"permissions of the role"`
	Limit       models.Resources `json:"limit" doc:"limit per member"`
	CreatedAt   time.Time        `json:"created_at"`
}

func roleOf(r models.Role) Role {
	return Role{r.ID, r.ProjectID, r.Name, r.Permission, r.Permits().Names(), r.Limit, r.CreatedAt.UTC()}
}

// ByRole names a role of a project.
type ByRole struct {
	ByID
	Role int64 `path:"role" minimum:"1" doc:"ID of the role"`
}

// RoleUpdate replaces a role.
type RoleUpdate struct {
	ByRole
	IfMatch
	Body projects.RoleInput
}

func (a rest) listRoles(ctx context.Context, in *PageOf) (*Response[List[Role]], error) {
	all, err := a.Projects.Roles(ctx, actorOf(ctx), in.ID)
	return listedAll(in.Paging, func(r projects.RoleView) int64 { return r.ID }, all, err,
		func(r projects.RoleView) Role { return roleOf(r.Role) })
}

func (a rest) createRole(ctx context.Context, in *CreateIn[projects.RoleInput]) (*Created[Role], error) {
	r, err := a.Projects.CreateRole(ctx, actorOf(ctx), in.ID, in.Body)
	return created(r.Version, roleOf(r), err, "projects", in.ID, "roles", r.ID)
}

func (a rest) getRole(ctx context.Context, in *ByRole) (*Found[Role], error) {
	r, err := a.Projects.Role(ctx, actorOf(ctx), in.ID, in.Role)
	return found(r.Version, roleOf(r), err)
}

func (a rest) updateRole(ctx context.Context, in *RoleUpdate) (*Found[Role], error) {
	in.Body.Version = in.version
	r, err := a.Projects.UpdateRole(ctx, actorOf(ctx), in.ID, in.Role, in.Body)
	return found(r.Version, roleOf(r), err)
}

func (a rest) deleteRole(ctx context.Context, in *ByRole) (*Nothing, error) {
	return nil, a.Projects.DeleteRole(ctx, actorOf(ctx), in.ID, in.Role)
}
