package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool"
	"weir/web"
	"weir/workspaces"
)

// leaverRoutes are what is left of those who have left a project.
func (a *App) leaverRoutes(p *echo.Group) {
	p.GET("/projects/:id/leavers", a.leaversPage)
	p.GET("/projects/:id/members/:member/handover", a.handoverPage)
	p.POST("/projects/:id/members/:member/handover", a.handOverPage)
	p.POST("/projects/:id/members/:member/handover/end", a.takeBackPage)
}

// fewLeavers are shown on the project's own page.
const fewLeavers = 10

// leaversOf are a page of those who have left a project.
func (a *App) leaversOf(ctx context.Context, p models.Project, page models.Page) (web.LeaversView, error) {
	actor := actorOf(ctx)
	rows, err := a.Ledger.Leavers(ctx, actor, p.ID, page)
	return web.LeaversView{ProjectID: p.ID, Project: p.Name, Rows: rows, CanManage: a.Ledger.Permissions(actor, p.ID).EditMembers}, err
}

// projectEnds fills the part of a project's page about ends that are near, and
// about who has left.
func (a *App) projectEnds(ctx context.Context, v *web.ProjectView) (err error) {
	p := v.Project
	if v.Extensions, err = a.Requests.Extensions(ctx, actorOf(ctx), []int64{p.ID}); err != nil {
		return err
	}
	v.Leavers, err = a.leaversOf(ctx, p, models.Page{Limit: fewLeavers + 1})
	if l := &v.Leavers; len(l.Rows) > fewLeavers {
		l.Rows, l.Next = l.Rows[:fewLeavers], path("projects", p.ID, "leavers")
	}
	return err
}

func (a *App) leaversPage(c echo.Context) error {
	ctx := c.Request().Context()
	p, err := a.Ledger.Project(ctx, actorOf(ctx), number(c, "id"))
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
	return a.render(c, http.StatusOK, web.LeaversPage(v))
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
	p, err := a.Ledger.Project(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.HandoverView{Form: f, Project: p.Project}
	if v.Heirs, err = a.Ledger.Heirs(ctx, actorOf(ctx), p.ID); err != nil {
		return nil, err
	}
	v.Leaver, err = a.Ledger.Leaver(ctx, actorOf(ctx), p.ID, number(c, "member"))
	return web.HandoverPage(v), err
}

func (a *App) handOverPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	project, in := number(c, "id"), pool.HandoverInput{ToMemberID: f.number("to_member_id")}
	var v models.Leaver
	if err = f.err(nil); err == nil {
		v, err = a.Ledger.HandOver(ctx, actorOf(ctx), project, number(c, "member"), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.handoverForm(c, f.web().Refuse(err)) })
	}
	return a.done(c, path("projects", project), models.Say("The directory of %s is handed to %s.", v.UserName, v.HeirName))
}

func (a *App) takeBackPage(c echo.Context) error {
	ctx := c.Request().Context()
	project := number(c, "id")
	if err := a.Ledger.TakeBack(ctx, actorOf(ctx), project, number(c, "member")); err != nil {
		return err
	}
	return a.done(c, path("projects", project), models.Say("The directory is handed to nobody any more. Workspaces that can write it still can until they end."))
}

// recently is how long after an end the home page speaks of it.
const recently = 30 * 24 * time.Hour

// myExtensions are those that concern the actor's own projects now.
func (a *App) myExtensions(ctx context.Context, mine []pool.Mine) (list []models.Extension, err error) {
	ids := make([]int64, len(mine))
	for i, m := range mine {
		ids[i] = m.Project.ID
	}
	all, err := a.Requests.Extensions(ctx, actorOf(ctx), ids)
	for _, e := range all {
		if a.Store.Now().Sub(e.EndsAt) < recently {
			list = append(list, e)
		}
	}
	return list, err
}

// stoppingOf is when a workspace is stopped, with what its owner can do about
// it.
func (a *App) stoppingOf(ctx context.Context, w workspaces.View) (*web.Stopping, error) {
	if w.Ending == nil {
		return nil, nil
	}
	s := &web.Stopping{At: w.Ending.At, Why: w.Ending.Why()}
	if w.UserID != actorOf(ctx).User.ID {
		return s, nil
	}
	list, err := a.Requests.Extensions(ctx, actorOf(ctx), []int64{w.ProjectID})
	for _, e := range list {
		if e.EndsAt.Equal(w.Ending.At) && (e.Kind == models.AskForDeadline) == w.Ending.Deadline {
			s.Extension = &e
		}
	}
	return s, err
}

// directoriesOf are the shared directories as a workspace that starts now sees
// them.
func (a *App) directoriesOf(w workspaces.View) (list []web.Directory) {
	handed := map[string]bool{}
	for _, id := range w.Holder.Inherits {
		handed[pool.DirectoryOf(w.ProjectID, id)] = true
	}
	for _, m := range a.Directories.Layout(w.Holder) {
		d := web.Directory{Path: m.Target, Writable: !m.ReadOnly}
		if handed[m.Target] {
			d.Note = models.Say("Handed over by who has left. A workspace that was started before has to be started anew to write it.")
		}
		list = append(list, d)
	}
	return list
}
