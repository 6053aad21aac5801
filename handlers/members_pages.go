package handlers

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool"
	"weir/web"
)

func (f *form) roleInput() pool.RoleInput {
	return pool.RoleInput{Name: f.text("name"), Permission: f.text("permission"), Permissions: f.permissions(""), Peak: f.resources("peak"), Version: f.version()}
}

// roleForm is the form of a role, new when role is 0, with what the quota has
// left for it.
func (a *App) roleForm(c echo.Context, role int64, f *web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	p, left, err := a.remaining(ctx, number(c, "id"))
	if err != nil {
		return nil, err
	}
	if err := a.Access.Check(actorOf(ctx), p.ID, "role", "write"); err != nil {
		return nil, err
	}
	v := web.RoleFormView{ProjectID: p.ID, Project: p.Name, ID: role, Quota: p.Quota, Remaining: left, Has: a.Access.Having(actorOf(ctx), p.ID), Form: formOf(0)}
	if role != 0 {
		roles, err := a.Ledger.Roles(ctx, actorOf(ctx), p.ID)
		if err != nil {
			return nil, err
		}
		r, ok := findRole(roles, role)
		if !ok {
			return nil, models.NotFound("role")
		}
		v.Name, v.Members, v.CanDelete, v.Form = r.Name, r.Members, r.Members == 0, formOf(r.Version)
		v.Remaining = left.Add(r.Peak.Times(r.Members))
		v.Form.Values["name"], v.Form.Values["permission"], v.Form.Values["permissions"] = r.Name, r.Permission, strings.Join(r.Permits().Names(), " ")
		putResources(v.Form, "peak", r.Peak)
	}
	if f != nil {
		v.Form = *f
	}
	v.Preview, err = a.previewForm(ctx, p.ID, v.Form, rolePreview(role, ""))
	return web.RoleFormPage(v), err
}

func findRole(roles []pool.RoleView, id int64) (pool.RoleView, bool) {
	for _, r := range roles {
		if r.ID == id {
			return r, true
		}
	}
	return pool.RoleView{}, false
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
		r, err = a.Ledger.CreateRole(c.Request().Context(), actorOf(c.Request().Context()), project, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.web().Refuse(err)
			return a.roleForm(c, 0, &w)
		})
	}
	return a.done(c, path("projects", project), models.Say("The role %s has been added.", r.Name))
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
		r, err = a.Ledger.UpdateRole(c.Request().Context(), actorOf(c.Request().Context()), project, id, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.web().Refuse(err)
			return a.roleForm(c, id, &w)
		})
	}
	return a.done(c, path("projects", project), models.Say("The role %s has been changed.", r.Name))
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
	p, err := a.Ledger.Project(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	if err := a.Access.Check(actorOf(ctx), p.ID, "role", "write"); err != nil {
		return nil, err
	}
	r, err := a.Ledger.Role(ctx, actorOf(ctx), p.ID, number(c, "role"))
	v := web.ConfirmDeleteRole(p.Project, r)
	if refused != nil {
		v.Form = v.Form.Refuse(refused)
	}
	return web.ConfirmPage(v), err
}

func (a *App) deleteRolePage(c echo.Context) error {
	ctx := c.Request().Context()
	project := number(c, "id")
	err := a.Ledger.DeleteRole(ctx, actorOf(ctx), project, number(c, "role"))
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.deleteRoleForm(c, err) })
	}
	return a.done(c, path("projects", project), models.Say("The role has been deleted."))
}

func (f *form) memberInput() pool.MemberInput {
	return pool.MemberInput{Email: f.text("email"), RoleID: f.number("role_id"), Until: f.day("until"), JoinedAt: f.day("joined_at"), Version: f.version()}
}

// memberForm is the form of a member, new when member is 0.
func (a *App) memberForm(c echo.Context, member int64, f *web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	p, left, err := a.remaining(ctx, number(c, "id"))
	if err != nil {
		return nil, err
	}
	if err := a.Access.Check(actor, p.ID, "member", "write"); err != nil {
		return nil, err
	}
	v := web.MemberFormView{ProjectID: p.ID, Project: p.Name, ID: member, Remaining: left, Form: formOf(0)}
	roles, err := a.Ledger.Roles(ctx, actor, p.ID)
	if err != nil {
		return nil, err
	}
	has := a.Access.Having(actor, p.ID)
	v.Lacks = map[int64]models.Permissions{}
	for _, r := range roles {
		v.Lacks[r.ID] = r.Permits().Without(has)
		v.Roles = append(v.Roles, web.RoleChoice{ID: r.ID, Name: r.Name, Permission: r.Permission, Peak: r.Peak})
	}
	if member != 0 {
		m, err := a.Ledger.Member(ctx, actor, p.ID, member)
		if err != nil {
			return nil, err
		}
		v.Name, v.Email, v.Remaining, v.Form = m.UserName, m.UserEmail, left.Add(m.Peak), formOf(m.Version)
		v.Form.Values["role_id"] = strconv.FormatInt(m.RoleID, 10)
		putDay(v.Form, "until", m.Until)
		putDay(v.Form, "joined_at", &m.JoinedAt)
	}
	if f != nil {
		v.Form = *f
	}
	if chosen := v.ChosenRole(); chosen > 0 {
		v.Preview, err = a.previewForm(ctx, p.ID, v.Form, memberPreview(member, chosen))
	}
	return web.MemberFormPage(v), err
}

func (a *App) newMemberPage(c echo.Context) error {
	page, err := a.memberForm(c, 0, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) editMemberPage(c echo.Context) error {
	page, err := a.memberForm(c, number(c, "member"), nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) addMemberPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if f.bool("preview") {
		return a.previewed(c, func() (templ.Component, error) { return a.memberForm(c, 0, f.typed()) })
	}
	project, in := number(c, "id"), f.memberInput()
	if err = f.err(nil); err == nil {
		_, err = a.Ledger.AddMember(c.Request().Context(), actorOf(c.Request().Context()), project, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.web().Refuse(err)
			return a.memberForm(c, 0, &w)
		})
	}
	return a.done(c, path("projects", project), models.Say("%s is a member now.", in.Email))
}

func (a *App) updateMemberPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if f.bool("preview") {
		return a.previewed(c, func() (templ.Component, error) { return a.memberForm(c, number(c, "member"), f.typed()) })
	}
	project, id, in := number(c, "id"), number(c, "member"), f.memberInput()
	if err = f.err(nil); err == nil {
		_, err = a.Ledger.UpdateMember(c.Request().Context(), actorOf(c.Request().Context()), project, id, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.web().Refuse(err)
			return a.memberForm(c, id, &w)
		})
	}
	return a.done(c, path("projects", project), models.Say("The member has been changed."))
}

func (a *App) confirmRemoveMemberPage(c echo.Context) error {
	ctx := c.Request().Context()
	p, err := a.Ledger.Project(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	if err := a.Access.Check(actorOf(ctx), p.ID, "member", "write"); err != nil {
		return err
	}
	m, err := a.Ledger.Member(ctx, actorOf(ctx), p.ID, number(c, "member"))
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, web.ConfirmPage(web.ConfirmRemoveMember(p.Project, m.MemberView)))
}

func (a *App) removeMemberPage(c echo.Context) error {
	ctx := c.Request().Context()
	project := number(c, "id")
	if err := a.endMembership(ctx, project, number(c, "member")); err != nil {
		return err
	}
	return a.done(c, path("projects", project), models.Say("The member has been removed. Running workspaces are being stopped."))
}

// endMembership removes a member, whose workspaces are to be stopped.
func (a *App) endMembership(ctx context.Context, project, member int64) error {
	err := a.Ledger.RemoveMember(ctx, actorOf(ctx), project, member)
	if err == nil {
		a.Wake()
	}
	return err
}
