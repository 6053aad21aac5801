package handlers

import (
	"context"
	"net/http"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/web"
	"weir/workspaces"
)

// workspaceRows lists workspaces for people.
func (a *App) workspaceRows(ctx context.Context, f models.WorkspaceFilter, page models.Page) ([]web.WorkspaceRow, error) {
	actor := actorOf(ctx)
	list, err := a.Workspaces.List(ctx, actor, f, page)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	ids := make([]int64, len(list))
	for i, w := range list {
		ids[i] = w.ID
	}
	view, err := a.Pool.ViewOf(ctx, actor, ids...)
	if err != nil {
		return nil, err
	}
	places := map[int64]int{}
	for _, w := range view.Waiting {
		places[w.ID] = w.Place
	}
	rows := make([]web.WorkspaceRow, len(list))
	for i, w := range list {
		devices := devicesOf(view, w.ID, actor.User.ID)
		rows[i] = web.WorkspaceRow{ID: w.ID, Name: w.Name, State: w.State, ProjectID: w.ProjectID, Project: w.ProjectName,
			Environment: w.EnvironmentName, Owner: w.UserName, Demand: w.Demand, Devices: devices, Reason: w.Reason,
			Progress: w.Progress, Place: places[w.ID], Simulated: anySimulated(devices),
			CanOpen:     w.State == models.StateRunning && w.UserID == actor.User.ID,
			CanStop:     !w.State.Ended() && w.State != models.StateStopping && a.Access.MayOwned(actor, w.UserID, w.ProjectID, "workspace", "stop"),
			RequestedAt: w.RequestedAt, EndedAt: w.EndedAt}
	}
	return rows, nil
}

func (a *App) workspacesPage(c echo.Context) error {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	f := models.WorkspaceFilter{UserID: actor.User.ID}
	state := c.QueryParam("state")
	switch state {
	case "all":
	case "ended":
		f.States = []models.WorkspaceState{models.StateStopped, models.StateFailed}
	default:
		state, f.States = "live", models.LiveStates
	}
	rows, err := a.workspaceRows(ctx, f, pageAfter(c, listLimit))
	if err != nil {
		return err
	}
	v := web.WorkspacesView{Rows: rows, State: state, CanLaunch: actor.MayLaunch()}
	if n := len(rows); n > 0 {
		v.Next = nextPage(c, n, listLimit, rows[n-1].ID)
	}
	return a.render(c, http.StatusOK, web.WorkspacesPage(v))
}

func (a *App) workspacePage(c echo.Context) error {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	w, err := a.Workspaces.View(ctx, actor, number(c, "id"))
	if err != nil {
		return err
	}
	view, err := a.Pool.ViewOf(ctx, actor, w.ID)
	if err != nil {
		return err
	}
	v := web.WorkspaceView{Workspace: w.WorkspaceView, Place: w.Place, Events: w.Events, CanOpen: w.MayOpen && w.State == models.StateRunning,
		CanStop: w.MayStop, Devices: devicesOf(view, w.ID, actor.User.ID)}
	v.Simulated = anySimulated(v.Devices)
	v.Directories = a.directoriesOf(w)
	if v.Stopping, err = a.stoppingOf(ctx, w); err != nil {
		return err
	}
	if w.UserID == actor.User.ID && actor.MayLaunchIn(w.ProjectID) {
		v.LaunchAgain = launchAgain(w.Workspace)
	}
	return a.render(c, http.StatusOK, web.WorkspacePage(v))
}

func (a *App) openWorkspacePage(c echo.Context) error {
	ctx := c.Request().Context()
	id := number(c, "id")
	secret, err := a.Workspaces.Open(ctx, actorOf(ctx), id)
	if err != nil {
		if models.KindOf(err) == models.KindConflict { // its page says why it does not open
			return c.Redirect(http.StatusSeeOther, path("workspaces", id))
		}
		return err
	}
	return c.Redirect(http.StatusSeeOther, a.openingURL(c.Request(), id, secret))
}

// openingSeconds is how long the address of openingURL is good.
const openingSeconds = 30

// openingURL is the address at which a browser enters a workspace with the
// single-use secret.
func (a *App) openingURL(r *http.Request, workspace int64, secret string) string {
	return a.Proxy.Origin(r, workspace) + "/.weir/open?token=" + queryEscape(secret)
}

func (a *App) stopWorkspacePage(c echo.Context) error {
	ctx := c.Request().Context()
	w, err := a.Workspaces.Stop(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	return a.done(c, path("workspaces", w.ID), models.Say("The workspace %s is being stopped.", w.Name))
}

func (f *form) launchInput() workspaces.LaunchInput {
	return workspaces.LaunchInput{ProjectID: f.number("project_id"), EnvironmentID: f.number("environment_id"), Versions: f.text("versions"),
		Name: f.text("name"), Request: f.launch(""), WhenShort: f.text("when_short")}
}

func (a *App) newWorkspacePage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	page, err := a.launchForm(c, f, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) launchWorkspacePage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := f.launchInput()
	var w models.Workspace
	if err = f.err(nil); err == nil {
		w, err = a.Workspaces.Launch(ctx, actorOf(ctx), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.launchForm(c, f, err) })
	}
	return c.Redirect(http.StatusSeeOther, path("workspaces", w.ID))
}

// launchForm is the launch page for what stands in f: the preview, and when a
// launch was refused, why.
func (a *App) launchForm(c echo.Context, f *form, refused error) (templ.Component, error) {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	v := web.LaunchView{Form: f.web()}
	mine, err := a.Ledger.Mine(ctx, actor)
	if err != nil {
		return nil, err
	}
	in := f.launchInput()
	for _, m := range mine {
		if m.Project.Active(a.Store.Now()) {
			v.Projects = append(v.Projects, web.Option{Value: strings.TrimPrefix(path(m.Project.ID), "/"), Label: m.Project.Name})
			if in.ProjectID == 0 {
				in.ProjectID = m.Project.ID
			}
		}
		if m.Project.ID == in.ProjectID {
			v.Project, v.Role = m.Project.Name, m.Member.RoleName
			v.Form.Values["project_id"] = strings.TrimPrefix(path(m.Project.ID), "/")
		}
	}
	if in.ProjectID == 0 {
		return web.LaunchPage(v), nil
	}
	p, err := a.Workspaces.Preview(ctx, actor, in)
	if err != nil {
		return nil, err
	}
	view, err := a.Pool.View(ctx, actor)
	if err != nil {
		return nil, err
	}
	fillLaunch(&v, p, view)
	if v.Answer.Wait != nil {
		f, err := a.forecast(ctx, p)
		if err != nil {
			return nil, err
		}
		v.Answer.Wait.Starts = f.Text
	}
	switch {
	case refused != nil:
		v.Form = v.Form.Refuse(refused)
	case f.err(nil) != nil:
		v.Form = v.Form.Refuse(f.err(nil))
	case len(p.Problems) > 0:
		v.Form = v.Form.Refuse(&models.Error{Kind: models.KindInvalid, Message: p.Message, Fields: p.Problems})
	}
	v.CanLaunch = p.Chosen.ID != 0 && len(p.Problems) == 0 && f.err(nil) == nil && p.Answer.Outcome != models.OutcomeRefused
	return web.LaunchPage(v), nil
}
