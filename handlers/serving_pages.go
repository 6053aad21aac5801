package handlers

import (
	"cmp"
	"context"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/pool"
	"weir/web"
	"weir/workspaces"
)

func (a *App) servingRoutes(p *echo.Group) {
	p.GET("/deployments", a.page(a.deploymentsPage))
	p.GET("/deployments/:id", a.page(a.deploymentPage))
	p.POST("/deployments/:id/stop", a.submit(nil, a.stopDeploymentPage))
}

func deploymentRow(d workspaces.DeploymentSummary) web.DeploymentRow {
	return web.DeploymentRow{DeploymentView: d.DeploymentView, Parts: d.Parts, CanStop: d.CanStop}
}

func (a *App) deploymentsPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	v := web.DeploymentsView{State: cmp.Or(c.QueryParam("state"), "live")}
	f := store.DeploymentFilter{States: deploymentStates(v.State)}
	list, err := a.Workspaces.ListDeployments(ctx, actorOf(ctx), f, pageAfter(c, pageSize))
	v.Rows = convert(list, deploymentRow)
	if n := len(list); n > 0 {
		v.Next = nextPage(c, n, pageSize, list[n-1].ID)
	}
	return web.DeploymentsPage(v), err
}

// deploymentInPool is one deployment with the view of the pool.
func (a *App) deploymentInPool(ctx context.Context, id int64) (workspaces.DeploymentSummary, pool.View, error) {
	return inPool(ctx, a, func(ctx context.Context) (workspaces.DeploymentSummary, error) {
		return a.Workspaces.ViewDeployment(ctx, actorOf(ctx), id)
	}, func(d workspaces.DeploymentSummary) []int64 { return []int64{d.HolderID} })
}

func (a *App) deploymentPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	d, view, err := a.deploymentInPool(ctx, number(c, "id"))
	if err != nil {
		return nil, err
	}
	return web.DeploymentPage(web.DeploymentDetail{DeploymentRow: deploymentRow(d), Events: d.Events,
		Devices: devicesOf(view, d.HolderID, actorOf(ctx).User.ID)}), nil
}

func (a *App) stopDeploymentPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	d, err := a.Workspaces.StopDeployment(ctx, actorOf(ctx), number(c, "id"))
	return redirect{path("deployments", d.ID), models.Say("Deployment %s is stopping.", d.Name)}, err
}
