package handlers

import (
	"context"
	"net/http"
	"strconv"

	"github.com/a-h/templ"
	"github.com/google/shlex"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/pool/broker"
	"weir/web"
	"weir/workspaces"
)

// runInput reads a run. The project is that of the workspace, if one is chosen.
func (f *form) runInput() workspaces.RunInput {
	in := workspaces.RunInput{ProjectID: f.number("project_id"), WorkspaceID: f.number("workspace_id"), Request: f.launch(""),
		ReservationID: f.number("reservation_id"), Directory: f.text("directory"), Name: f.text("name"),
		TimeLimitSeconds: 60 * f.number("time_limit_minutes"), WhenInsufficient: f.text("when_insufficient")}
	if in.WorkspaceID != 0 {
		in.ProjectID = 0
	}
	var err error
	if in.Command, err = shlex.Split(f.text("command")); err != nil {
		f.problems.Add("command", "has a quote that is not closed")
	}
	return in
}

func (a *App) newRunPage(_ context.Context, c echo.Context) (templ.Component, error) {
	f, err := readForm(c)
	if err != nil {
		return nil, err
	}
	return a.runForm(c, f, nil)
}

func (a *App) startRunPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := f.runInput()
	var r models.Run
	if err = f.errWith(in.Check()); err == nil {
		r, err = a.Workspaces.StartRun(ctx, actorOf(ctx), in)
	}
	if err != nil {
		return a.refused(c, f, err, func(context.Context, echo.Context) (templ.Component, error) { return a.runForm(c, f, err) })
	}
	return c.Redirect(http.StatusSeeOther, path("runs", r.ID))
}

// runForm is the form of a run with the values of f: the plan, and the reason if a run was
// refused.
func (a *App) runForm(c echo.Context, f *form, refused error) (templ.Component, error) {
	ctx := c.Request().Context()
	v := web.RunForm{LaunchView: web.LaunchView{Form: f.asSubmitted()}}
	p, err := a.Workspaces.PreviewRun(ctx, actorOf(ctx), f.runInput())
	if err != nil || p.Project.ID == 0 {
		return web.RunFormPage(v), err
	}
	view, err := a.launchView(ctx, p)
	if err != nil {
		return nil, err
	}
	if v.Workspaces, err = a.workspaceOptions(ctx, f.number("workspace_id")); err != nil {
		return nil, err
	}
	if v.Reservations, err = a.reservationOptions(ctx, p.Project.ID); err != nil {
		return nil, err
	}
	v.Projects = projectOptions(p.Projects)
	v.Project, v.Role, v.Environment = p.Project.Name, p.Role, p.Environment.Name
	v.Form.Values["project_id"] = strconv.FormatInt(p.Project.ID, 10)
	fillLaunch(&v.LaunchView, p, view)
	judge(&v.LaunchView, p, refused, f.err())
	return web.RunFormPage(v), nil
}

// reservationOptions are the actor's own reservations in a project that are active; 0: in any.
func (a *App) reservationOptions(ctx context.Context, project int64) ([]web.Option, error) {
	f := store.ReservationFilter{ProjectID: project, UserID: actorOf(ctx).User.ID, States: []models.ReservationState{models.ReservationActive}}
	list, err := a.Broker.List(ctx, actorOf(ctx), f, store.Page{Limit: pageSize})
	return models.Map(list, func(r broker.View) web.Option { return web.ReservationOption(ctx, reservationRow(ctx, r)) }), err
}

// workspaceOptions are the actor's own workspaces that have not ended, and the chosen one.
func (a *App) workspaceOptions(ctx context.Context, chosen int64) (list []web.Option, err error) {
	actor := actorOf(ctx)
	f := activeWorkspaces(0, actor.User.ID)
	own, err := a.Workspaces.List(ctx, actor, f, store.Page{Limit: pageSize})
	for _, w := range own {
		list = append(list, web.Option{Value: strconv.FormatInt(w.ID, 10), Label: w.Name + " · " + w.ProjectName})
		if w.ID == chosen {
			chosen = 0
		}
	}
	if chosen > 0 { // it has ended, and can be named all the same
		list = append(list, web.Option{Value: strconv.FormatInt(chosen, 10), Label: "№ " + strconv.FormatInt(chosen, 10)})
	}
	return list, err
}
