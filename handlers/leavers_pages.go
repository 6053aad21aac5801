package handlers

import (
	"context"
	"net/http"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) leaversRoutes(p *echo.Group) {
	p.GET("/projects/:id/former-members", a.leaversPage)
	p.GET("/projects/:id/members/:member/handover", a.handoverPage)
	p.POST("/projects/:id/members/:member/handover", a.handOverPage)
	p.POST("/projects/:id/members/:member/handover/end", a.endHandoverPage)
}

// fewLeavers are shown on the project's own page.
const fewLeavers = 10

// leaversOf are a page of those who have left a project.
func (a *App) leaversOf(ctx context.Context, p models.Project, page models.Page) (web.FormerMembersView, error) {
	actor := actorOf(ctx)
	rows, err := a.Projects.FormerMembers(ctx, actor, p.ID, page)
	return web.FormerMembersView{ProjectID: p.ID, Project: p.Name, Rows: rows, CanManage: a.Projects.Permissions(actor, p.ID).EditMembers}, err
}

// projectEnds fills the part of a project's page about ends that are near, and
// about who has left.
func (a *App) projectEnds(ctx context.Context, v *web.ProjectView) (err error) {
	p := v.Project
	if v.Extensions, err = a.Requests.Extensions(ctx, actorOf(ctx), []int64{p.ID}); err != nil {
		return err
	}
	v.FormerMembers, err = a.leaversOf(ctx, p, models.Page{Limit: fewLeavers + 1})
	if l := &v.FormerMembers; len(l.Rows) > fewLeavers {
		l.Rows, l.Next = l.Rows[:fewLeavers], path("projects", p.ID, "leavers")
	}
	return err
}

func (a *App) leaversPage(c echo.Context) error {
	ctx := c.Request().Context()
	p, err := a.Projects.Project(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	v, err := a.leaversOf(ctx, p.Project, pageAfter(c, listLimit))
	if err != nil {
		return err
	}
	if n := len(v.Rows); n > 0 {
		v.Next = nextPage(c, n, listLimit, v.Rows[n-1].ID)
	}
	return a.render(c, http.StatusOK, web.FormerMembersPage(v))
}

func (a *App) handoverPage(c echo.Context) error {
	page, err := a.handoverForm(c, formOf(0))
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) handoverForm(c echo.Context, f web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	p, err := a.Projects.Project(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.HandOverView{Form: f, Project: p.Project}
	if v.Recipients, err = a.Projects.Recipients(ctx, actorOf(ctx), p.ID); err != nil {
		return nil, err
	}
	v.FormerMember, err = a.Projects.FormerMember(ctx, actorOf(ctx), p.ID, number(c, "member"))
	return web.HandoverPage(v), err
}

func (a *App) handOverPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	project, in := number(c, "id"), projects.HandoverInput{ToMemberID: f.number("to_member_id")}
	var v models.FormerMember
	if err = f.err(nil); err == nil {
		v, err = a.Projects.HandOver(ctx, actorOf(ctx), project, number(c, "member"), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.handoverForm(c, f.asTyped().Refuse(err)) })
	}
	return a.done(c, path("projects", project), models.Say("The directory of %s was handed over to %s.", v.UserName, v.RecipientName))
}

func (a *App) endHandoverPage(c echo.Context) error {
	ctx := c.Request().Context()
	project := number(c, "id")
	if err := a.Projects.EndHandover(ctx, actorOf(ctx), project, number(c, "member")); err != nil {
		return err
	}
	return a.done(c, path("projects", project), models.Say("The handover was ended. Running workspaces can write to the directory until they stop."))
}
