package handlers

import (
	"context"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) membersRoutes(p *echo.Group) {
	p.POST("/projects/:id/members", a.submit(a.memberPage, a.addMemberPage))
	p.GET("/projects/:id/members/new", a.page(a.memberPage))
	p.POST("/projects/:id/members/:member", a.submit(a.memberPage, a.updateMemberPage))
	p.GET("/projects/:id/members/:member/edit", a.page(a.memberPage))
	p.GET("/projects/:id/members/:member/delete", a.page(a.confirmRemoveMemberPage))
	p.POST("/projects/:id/members/:member/delete", a.submit(nil, a.removeMemberPage))
}

func (f *form) memberInput() projects.MemberInput {
	return projects.MemberInput{Email: f.text("email"), RoleID: f.number("role_id"), Until: f.lastDay("until"), JoinedAt: f.day("joined_at"),
		Version: f.version()}
}

// memberPage is the form of a member, or of a new one.
func (a *App) memberPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	id := optionalNumber(c, "member")
	form, err := a.Projects.MemberForm(ctx, actorOf(ctx), number(c, "id"), id)
	if err != nil {
		return nil, err
	}
	p, m, v := form.Project, form.Member, memberFormOf(form)
	if id != 0 {
		v.Form.Values["role_id"] = strconv.FormatInt(m.RoleID, 10)
		putLastDay(v.Form, "until", m.Until)
		putDay(v.Form, "joined_at", &m.JoinedAt)
	}
	v.Form = submittedOr(c, v.Form)
	v.Preview = &web.PreviewView{}
	if chosen := v.ChosenRole(); chosen > 0 {
		v.Preview, err = a.previewForm(ctx, p.ID, v.Form, memberPreview(id, chosen))
	}
	return web.MemberFormPage(v), err
}

// memberFormOf is the form before anything was entered.
func memberFormOf(form projects.Form) web.MemberFormView {
	p, m := form.Project, form.Member
	v := web.MemberFormView{ProjectID: p.ID, Project: p.Name, ID: m.ID, Name: m.UserName, Email: m.UserEmail, Remaining: form.Remaining,
		Lacks: map[int64]models.Permissions{}, Form: formOf(m.Version)}
	for _, r := range form.Roles {
		v.Roles = append(v.Roles, roleChoice(r))
		v.Lacks[r.ID] = r.Permits().Without(form.Permissions.Has)
	}
	return v
}

func (a *App) addMemberPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project, in := number(c, "id"), f.memberInput()
	if err := f.errWith(in.Check(a.Store.Now())); err != nil {
		return redirect{}, err
	}
	_, err := a.Projects.AddMember(ctx, actorOf(ctx), project, in)
	return redirect{path("projects", project), models.Say("%s is now a member.", in.Email)}, err
}

func (a *App) updateMemberPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project, in := number(c, "id"), f.memberInput()
	if err := f.errWith(in.Check(a.Store.Now())); err != nil {
		return redirect{}, err
	}
	_, err := a.Projects.UpdateMember(ctx, actorOf(ctx), project, number(c, "member"), in)
	return redirect{path("projects", project), models.Say("Member updated.")}, err
}

func (a *App) confirmRemoveMemberPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	form, err := a.Projects.MemberForm(ctx, actorOf(ctx), number(c, "id"), number(c, "member"))
	return web.ConfirmPage(web.ConfirmRemoveMember(form.Project.Project, form.Member)), err
}

func (a *App) removeMemberPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	project := number(c, "id")
	err := a.Projects.RemoveMember(ctx, actorOf(ctx), project, number(c, "member"))
	return redirect{path("projects", project), models.Say("Member removed. Their running workspaces are being stopped.")}, err
}
