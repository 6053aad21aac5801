package handlers

import (
	"context"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) rolesRoutes(p *echo.Group) {
	p.POST("/projects/:id/roles", a.submit(a.rolePage, a.createRolePage))
	p.GET("/projects/:id/roles/new", a.page(a.rolePage))
	p.POST("/projects/:id/roles/:role", a.submit(a.rolePage, a.updateRolePage))
	p.GET("/projects/:id/roles/:role/edit", a.page(a.rolePage))
	p.GET("/projects/:id/roles/:role/delete", a.page(a.confirmDeleteRolePage))
	p.POST("/projects/:id/roles/:role/delete", a.submit(a.confirmDeleteRolePage, a.deleteRolePage))
}

func (f *form) roleInput() projects.RoleInput {
	return projects.RoleInput{Name: f.text("name"), Permission: f.text("permission"), Permissions: f.permissions(""),
		Limit: f.resources("limit"), Version: f.version()}
}

// rolePage is the form of a role, or of a new one.
func (a *App) rolePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	id := optionalNumber(c, "role")
	form, err := a.Projects.RoleForm(ctx, actorOf(ctx), number(c, "id"), id)
	if err != nil {
		return nil, err
	}
	p, r := form.Project, form.Role
	v := web.RoleFormView{ProjectID: p.ID, Project: p.Name, ID: id, Name: r.Name, Members: r.Members, Blocked: r.CheckDelete(),
		Quota: p.Quota, Remaining: form.Remaining, Has: form.Permissions.Has, Form: formOf(r.Version)}
	if id != 0 {
		v.Form.Values["name"], v.Form.Values["permission"], v.Form.Values["permissions"] = r.Name, r.Permission, strings.Join(r.Permits().Names(),
			" ")
		putResources(v.Form, "limit", r.Limit)
	}
	v.Form = submittedOr(c, v.Form)
	v.Preview, err = a.previewForm(ctx, p.ID, v.Form, rolePreview(id, ""))
	return web.RoleFormPage(v), err
}

func (a *App) createRolePage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project, in := number(c, "id"), f.roleInput()
	if err := f.errWith(in.Check()); err != nil {
		return redirect{}, err
	}
	r, err := a.Projects.CreateRole(ctx, actorOf(ctx), project, in)
	return redirect{path("projects", project), models.Say("Role %s added.", r.Name)}, err
}

func (a *App) updateRolePage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project, in := number(c, "id"), f.roleInput()
	if err := f.errWith(in.Check()); err != nil {
		return redirect{}, err
	}
	r, err := a.Projects.UpdateRole(ctx, actorOf(ctx), project, number(c, "role"), in)
	return redirect{path("projects", project), models.Say("Role %s updated.", r.Name)}, err
}

func (a *App) confirmDeleteRolePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	form, err := a.Projects.RoleForm(ctx, actorOf(ctx), number(c, "id"), number(c, "role"))
	return confirmPage(c, web.ConfirmDeleteRole(form.Project.Project, form.Role.Role, form.Role.CheckDelete())), err
}

func (a *App) deleteRolePage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	project := number(c, "id")
	err := a.Projects.DeleteRole(ctx, actorOf(ctx), project, number(c, "role"))
	return redirect{path("projects", project), models.Say("Role deleted.")}, err
}

func roleChoices(roles []projects.RoleView) (list []web.RoleChoice) {
	for _, r := range roles {
		list = append(list, roleChoice(r.Role))
	}
	return list
}

func roleChoice(r models.Role) web.RoleChoice {
	return web.RoleChoice{ID: r.ID, Name: r.Name, Permission: r.Permission, Limit: r.Limit}
}
