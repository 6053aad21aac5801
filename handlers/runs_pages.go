package handlers

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/web"
	"weir/workspaces"
)

func (a *App) runsRoutes(p *echo.Group) {
	p.GET("/runs", a.page(a.runsPage))
	p.POST("/runs", a.startRunPage)
	p.GET("/runs/new", a.page(a.newRunPage))
	p.GET("/runs/:id", a.page(a.runPage))
	p.POST("/runs/:id/renew", a.submit(nil, a.keepRunPage))
	p.GET("/runs/:id/stop", a.page(a.confirmStopRunPage))
	p.POST("/runs/:id/stop", a.submit(a.confirmStopRunPage, a.stopRunPage))
	p.GET("/runs/:id/delete", a.page(a.confirmDeleteRunPage))
	p.POST("/runs/:id/delete", a.submit(a.confirmDeleteRunPage, a.deleteRunPage))
}

func runRow(r workspaces.RunSummary) web.RunRow {
	return web.RunRow{RunView: r.RunView, CanStop: r.CanStop, CanRead: r.CanRead,
		CanDelete: r.CanDelete, IdleEndsAt: r.IdleEndsAt}
}

func (a *App) runsPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	v := web.RunsView{State: cmp.Or(c.QueryParam("state"), "live")}
	v.Project, _ = strconv.ParseInt(c.QueryParam("project_id"), 10, 64)
	v.CanStart = v.Project == 0 || a.Workspaces.CanStartRun(actorOf(ctx), v.Project)
	f := RunsQuery{ProjectID: v.Project, State: v.State}.filter()
	list, err := a.Workspaces.ListRuns(ctx, actorOf(ctx), f, pageAfter(c))
	v.Rows = models.Map(list, runRow)
	v.Next = nextPage(c, list, func(r workspaces.RunSummary) int64 { return r.ID })
	return web.RunsPage(v), err
}

// shownOutput is how much of a run's output its page shows, in bytes.
const shownOutput = 64 << 10

func (a *App) runPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor := actorOf(ctx)
	r, view, err := a.runInPool(ctx, number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.RunDetail{RunRow: runRow(r), Events: r.Events, Reservation: r.Reservation, Devices: devicesOf(view, r.HolderID, actor.User.ID)}
	v.Position, v.Simulated = view.Position(r.HolderID), anySimulated(v.Devices)
	if r.State == models.RunQueued {
		estimate, err := a.startEstimate(ctx, r.HolderID)
		if err != nil {
			return nil, err
		}
		if estimate != nil {
			v.Starts = web.Start{Text: estimate.Text, At: estimate.At}
		}
	}
	if r.CanRead {
		l, err := a.Workspaces.RunOutputEnd(ctx, actor, r.ID, shownOutput)
		if err != nil {
			return nil, err
		}
		graph, err := a.Workspaces.RunGraph(ctx, actor, r.ID)
		if err != nil && models.KindOf(err) != models.KindNotFound {
			return nil, err
		}
		v.Graph = graph
		v.Output, v.Cut = strings.ToValidUTF8(string(l.Data), "\uFFFD"), l.Offset > 0
	}
	return web.RunPage(v), nil
}

// keepRunPage is the renewal of a person who wants to keep an idle run.
func (a *App) keepRunPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	r, err := a.Workspaces.RenewRun(ctx, actorOf(ctx), number(c, "id"), workspaces.RunRenewal{Worked: true})
	done := models.Say("Run %s keeps running.", r.Name)
	if r.Demand.GPUs > 0 {
		done = models.Say("Run %s keeps its GPU.", r.Name)
	}
	return redirect{path("runs", r.ID), done}, err
}

func (a *App) confirmStopRunPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	r, err := a.Workspaces.ViewRun(ctx, actorOf(ctx), number(c, "id"))
	return confirmPage(c, web.ConfirmStopRun(runRow(r))), err
}

func (a *App) stopRunPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	r, err := a.Workspaces.StopRun(ctx, actorOf(ctx), number(c, "id"))
	return redirect{path("runs", r.ID), models.Say("Run %s is stopping.", r.Name)}, err
}

func (a *App) confirmDeleteRunPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	r, err := a.Workspaces.ViewRun(ctx, actorOf(ctx), number(c, "id"))
	return confirmPage(c, web.ConfirmDeleteRun(runRow(r))), err
}

func (a *App) deleteRunPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	return redirect{"/runs?state=ended", models.Say("Run deleted.")}, a.Workspaces.DeleteRun(ctx, actorOf(ctx), number(c, "id"))
}

// runsOfWorkspace are the runs in the environment of a workspace that have not ended.
func (a *App) runsOfWorkspace(ctx context.Context, w models.Workspace) ([]web.RunRow, error) {
	if a.Workspaces.Runs == nil || w.State != models.StateRunning {
		return nil, nil
	}
	list, err := a.Workspaces.ListRuns(ctx, actorOf(ctx), RunsQuery{WorkspaceID: w.ID, State: "live"}.filter(), store.Page{Limit: pageSize})
	return models.Map(list, runRow), err
}
