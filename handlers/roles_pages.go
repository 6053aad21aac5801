package handlers

import (
	"net/http"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) rolesRoutes(p *echo.Group) {
	p.POST("/projects/:id/roles", a.createRolePage)
	p.GET("/projects/:id/roles/new", a.newRolePage)
	p.POST("/projects/:id/roles/:role", a.updateRolePage)
	p.GET("/projects/:id/roles/:role/edit", a.editRolePage)
	p.GET("/projects/:id/roles/:role/delete", a.confirmDeleteRolePage)
	p.POST("/projects/:id/roles/:role/delete", a.deleteRolePage)
}

func (f *form) roleInput() projects.RoleInput {
	return projects.RoleInput{Name: f.text("name"), Permission: f.text("permission"), Permissions: f.permissions(""), Limit: f.resources("limit"), Version: f.version()}
}

// roleForm is the form of a role, new when role is 0, with what the quota has
// left for it.
func (a *App) roleForm(c echo.Context, role int64, f *web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	p, left, err := a.remaining(ctx, number(c, "id"))
	if err != nil {
		return nil, err
	}
	if err := a.Access.Check(actorOf(ctx), p.ID, policies.RoleWrite); err != nil {
		return nil, err
	}
	v := web.RoleFormView{ProjectID: p.ID, Project: p.Name, ID: role, Quota: p.Quota, Remaining: left, Has: a.Access.PermissionsIn(actorOf(ctx), p.ID), Form: formOf(0)}
	if role != 0 {
		roles, err := a.Projects.Roles(ctx, actorOf(ctx), p.ID)
		if err != nil {
			return nil, err
		}
		r, ok := findRole(roles, role)
		if !ok {
			return nil, models.NotFound("role")
		}
		v.Name, v.Members, v.CanDelete, v.Form = r.Name, r.Members, r.Members == 0, formOf(r.Version)
		v.Remaining = left.Add(r.Limit.Times(r.Members))
		v.Form.Values["name"], v.Form.Values["permission"], v.Form.Values["permissions"] = r.Name, r.Permission, strings.Join(r.Permits().Names(), " ")
		putResources(v.Form, "limit", r.Limit)
	}
	if f != nil {
		v.Form = *f
	}
	v.Preview, err = a.previewForm(ctx, p.ID, v.Form, rolePreview(role, ""))
	return web.RoleFormPage(v), err
}

func findRole(roles []projects.RoleView, id int64) (projects.RoleView, bool) {
	for _, r := range roles {
		if r.ID == id {
			return r, true
		}
	}
	return projects.RoleView{}, false
}

func (a *App) newRolePage(c echo.Context) error {
	page, err := a.roleForm(c, 0, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) editRolePage(c echo.Context) error {
	page, err := a.roleForm(c, number(c, "role"), nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) createRolePage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if f.bool("preview") {
		return a.previewed(c, func() (templ.Component, error) { return a.roleForm(c, 0, f.typed()) })
	}
	project, in := number(c, "id"), f.roleInput()
	var r models.Role
	if err = f.err(nil); err == nil {
		r, err = a.Projects.CreateRole(c.Request().Context(), actorOf(c.Request().Context()), project, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.asTyped().Refuse(err)
			return a.roleForm(c, 0, &w)
		})
	}
	return a.done(c, path("projects", project), models.Say("Role %s added.", r.Name))
}

func (a *App) updateRolePage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if f.bool("preview") {
		return a.previewed(c, func() (templ.Component, error) { return a.roleForm(c, number(c, "role"), f.typed()) })
	}
	project, id, in := number(c, "id"), number(c, "role"), f.roleInput()
	var r models.Role
	if err = f.err(nil); err == nil {
		r, err = a.Projects.UpdateRole(c.Request().Context(), actorOf(c.Request().Context()), project, id, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.asTyped().Refuse(err)
			return a.roleForm(c, id, &w)
		})
	}
	return a.done(c, path("projects", project), models.Say("Role %s updated.", r.Name))
}

func (a *App) confirmDeleteRolePage(c echo.Context) error {
	page, err := a.deleteRoleForm(c, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) deleteRoleForm(c echo.Context, refused error) (templ.Component, error) {
	ctx := c.Request().Context()
	p, err := a.Projects.Project(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	if err := a.Access.Check(actorOf(ctx), p.ID, policies.RoleWrite); err != nil {
		return nil, err
	}
	r, err := a.Projects.Role(ctx, actorOf(ctx), p.ID, number(c, "role"))
	v := web.ConfirmDeleteRole(p.Project, r)
	if refused != nil {
		v.Form = v.Form.Refuse(refused)
	}
	return web.ConfirmPage(v), err
}

func (a *App) deleteRolePage(c echo.Context) error {
	ctx := c.Request().Context()
	project := number(c, "id")
	err := a.Projects.DeleteRole(ctx, actorOf(ctx), project, number(c, "role"))
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.deleteRoleForm(c, err) })
	}
	return a.done(c, path("projects", project), models.Say("Role deleted."))
}

func roleChoices(roles []projects.RoleView) (list []web.RoleChoice) {
	for _, r := range roles {
		list = append(list, web.RoleChoice{ID: r.ID, Name: r.Name, Permission: r.Permission, Limit: r.Limit})
	}
	return list
}
