package handlers

import (
	"context"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) formerMembersRoutes(p *echo.Group) {
	p.GET("/projects/:id/former-members", a.page(a.formerMembersPage))
	p.GET("/projects/:id/members/:member/handover", a.page(a.handoverPage))
	p.POST("/projects/:id/members/:member/handover", a.submit(a.handoverPage, a.createHandoverPage))
	p.GET("/projects/:id/members/:member/handover/end", a.page(a.confirmEndHandoverPage))
	p.POST("/projects/:id/members/:member/handover/end", a.submit(a.confirmEndHandoverPage, a.endHandoverPage))
}

// maxFormerMembers are shown on the project's own page.
const maxFormerMembers = 10

// formerMembersView is a page of a project's former members.
func (a *App) formerMembersView(ctx context.Context, p models.Project, page store.Page) (web.FormerMembersView, error) {
	actor := actorOf(ctx)
	rows, err := a.Projects.FormerMembers(ctx, actor, p.ID, page)
	return web.FormerMembersView{ProjectID: p.ID, Project: p.Name, Rows: rows, CanManage: a.Projects.Permissions(actor, p.ID).EditMembers}, err
}

// projectEnds adds upcoming end dates and former members to a project's page.
func (a *App) projectEnds(ctx context.Context, v *web.ProjectView) (err error) {
	p := v.Project
	if v.Extensions, err = a.Requests.Extensions(ctx, actorOf(ctx), []int64{p.ID}); err != nil {
		return err
	}
	v.FormerMembers, err = a.formerMembersView(ctx, p, store.Page{Limit: maxFormerMembers + 1})
	if l := &v.FormerMembers; len(l.Rows) > maxFormerMembers {
		l.Rows, l.Next = l.Rows[:maxFormerMembers], path("projects", p.ID, "former-members")
	}
	return err
}

func (a *App) formerMembersPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	p, err := a.Projects.Project(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	v, err := a.formerMembersView(ctx, p.Project, pageAfter(c))
	v.Next = nextPage(c, v.Rows, func(m models.FormerMember) int64 { return m.ID })
	return web.FormerMembersPage(v), err
}

func (a *App) handoverPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	p, err := a.Projects.Project(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.HandoverView{Form: submittedOr(c, formOf(0)), Project: p.Project}
	if v.Recipients, err = a.Projects.Recipients(ctx, actorOf(ctx), p.ID); err != nil {
		return nil, err
	}
	v.FormerMember, err = a.Projects.FormerMember(ctx, actorOf(ctx), p.ID, number(c, "member"))
	return web.HandoverPage(v), err
}

func (a *App) createHandoverPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project, in := number(c, "id"), projects.HandoverInput{ToMemberID: f.number("to_member_id")}
	if err := f.err(); err != nil {
		return redirect{}, err
	}
	v, err := a.Projects.CreateHandover(ctx, actorOf(ctx), project, number(c, "member"), in)
	return redirect{path("projects", project), models.Say("The directory of %s was handed over to %s.", v.UserName, v.RecipientName)}, err
}

func (a *App) confirmEndHandoverPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	l, err := a.Projects.FormerMember(ctx, actorOf(ctx), number(c, "id"), number(c, "member"))
	return confirmPage(c, web.ConfirmEndHandover(l)), err
}

func (a *App) endHandoverPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	project := number(c, "id")
	err := a.Projects.EndHandover(ctx, actorOf(ctx), project, number(c, "member"))
	return redirect{path("projects", project), models.Say("The handover was ended. Running workspaces can write to the directory until they stop.")}, err
}
