package handlers

import (
	"context"
	"net/http"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) membersRoutes(p *echo.Group) {
	p.POST("/projects/:id/members", a.addMemberPage)
	p.GET("/projects/:id/members/new", a.newMemberPage)
	p.POST("/projects/:id/members/:member", a.updateMemberPage)
	p.GET("/projects/:id/members/:member/edit", a.editMemberPage)
	p.GET("/projects/:id/members/:member/delete", a.confirmRemoveMemberPage)
	p.POST("/projects/:id/members/:member/delete", a.removeMemberPage)
}

func (f *form) memberInput() projects.MemberInput {
	return projects.MemberInput{Email: f.text("email"), RoleID: f.number("role_id"), Until: f.day("until"), JoinedAt: f.day("joined_at"), Version: f.version()}
}

// memberForm is the form of a member, new when member is 0.
func (a *App) memberForm(c echo.Context, member int64, f *web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	p, left, err := a.remaining(ctx, number(c, "id"))
	if err != nil {
		return nil, err
	}
	if err := a.Access.Check(actor, p.ID, policies.MemberWrite); err != nil {
		return nil, err
	}
	v := web.MemberFormView{ProjectID: p.ID, Project: p.Name, ID: member, Remaining: left, Form: formOf(0)}
	roles, err := a.Projects.Roles(ctx, actor, p.ID)
	if err != nil {
		return nil, err
	}
	has := a.Access.PermissionsIn(actor, p.ID)
	v.Lacks = map[int64]models.Permissions{}
	for _, r := range roles {
		v.Lacks[r.ID] = r.Permits().Without(has)
		v.Roles = append(v.Roles, web.RoleChoice{ID: r.ID, Name: r.Name, Permission: r.Permission, Limit: r.Limit})
	}
	if member != 0 {
		m, err := a.Projects.Member(ctx, actor, p.ID, member)
		if err != nil {
			return nil, err
		}
		v.Name, v.Email, v.Remaining, v.Form = m.UserName, m.UserEmail, left.Add(m.Limit), formOf(m.Version)
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
		_, err = a.Projects.AddMember(c.Request().Context(), actorOf(c.Request().Context()), project, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.asTyped().Refuse(err)
			return a.memberForm(c, 0, &w)
		})
	}
	return a.done(c, path("projects", project), models.Say("%s is now a member.", in.Email))
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
		_, err = a.Projects.UpdateMember(c.Request().Context(), actorOf(c.Request().Context()), project, id, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.asTyped().Refuse(err)
			return a.memberForm(c, id, &w)
		})
	}
	return a.done(c, path("projects", project), models.Say("Member updated."))
}

func (a *App) confirmRemoveMemberPage(c echo.Context) error {
	ctx := c.Request().Context()
	p, err := a.Projects.Project(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	if err := a.Access.Check(actorOf(ctx), p.ID, policies.MemberWrite); err != nil {
		return err
	}
	m, err := a.Projects.Member(ctx, actorOf(ctx), p.ID, number(c, "member"))
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
	return a.done(c, path("projects", project), models.Say("Member removed. Their running workspaces are being stopped."))
}

// endMembership removes a member, whose workspaces are to be stopped.
func (a *App) endMembership(ctx context.Context, project, member int64) error {
	err := a.Projects.RemoveMember(ctx, actorOf(ctx), project, member)
	if err == nil {
		a.Wake()
	}
	return err
}
