package handlers

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

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
	p.GET("/deployments/new", a.page(a.deployPage))
	p.POST("/deployments", a.submit(a.deployPage, a.deploy))
	p.GET("/deployments/:id", a.page(a.deploymentPage))
	p.GET("/deployments/:id/stop", a.page(a.confirmStopDeploymentPage))
	p.POST("/deployments/:id/stop", a.submit(a.confirmStopDeploymentPage, a.stopDeploymentPage))
	p.POST("/deployments/:id/update", a.submit(nil, a.updateDeploymentPage))
}

func deploymentRow(d workspaces.DeploymentSummary) web.DeploymentRow {
	return web.DeploymentRow{DeploymentView: d.DeploymentView, Parts: d.Parts, CanStop: d.CanStop}
}

func (a *App) deploymentsPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	v := web.DeploymentsView{State: cmp.Or(c.QueryParam("state"), "live")}
	f := store.DeploymentFilter{States: deploymentStates(v.State)}
	list, err := a.Workspaces.ListDeployments(ctx, actorOf(ctx), f, pageAfter(c))
	v.Rows = models.Map(list, deploymentRow)
	v.Next = nextPage(c, list, func(d workspaces.DeploymentSummary) int64 { return d.ID })
	return web.DeploymentsPage(v), err
}

// deployPage asks for a model; the query can fill the form.
func (a *App) deployPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	f := formOf(0)
	for name := range c.QueryParams() {
		f.Values[name] = c.QueryParam(name)
	}
	v := web.DeployForm{Form: submittedOr(c, f)}
	actor := actorOf(ctx)
	mine, err := a.Projects.Memberships(ctx, actor, actor.User.ID)
	for _, m := range mine {
		if m.CanLaunch {
			v.Projects = append(v.Projects, web.Option{Value: strconv.FormatInt(m.Project.ID, 10), Label: m.Project.Name})
		}
	}
	v.Environments = []web.Option{{Label: web.T(a.localized(c), "the first suitable one")}}
	environments, failed := a.Catalog.Environments(ctx, actor)
	for _, e := range environments {
		if workspaces.CanCompute(e) {
			v.Environments = append(v.Environments, web.Option{Value: strconv.FormatInt(e.ID, 10), Label: e.Name})
		}
	}
	v.ServiceTypes = serviceTypeOptions(a.localized(c), a.Deployments.ServedTypes(), v.Form.Value("service_type"))
	reservations, unread := a.reservationOptions(ctx, 0)
	v.Reservations = append([]web.Option{{Label: web.T(a.localized(c), "none")}}, reservations...)
	return web.DeployPage(v), cmp.Or(err, failed, unread)
}

func (a *App) deploy(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	in := workspaces.DeployInput{ProjectID: f.number("project_id"), Name: f.text("name"),
		Path: models.FilePath(strings.TrimSpace(f.text("path"))), Parts: f.number("parts"), Cores: f.number("cores"),
		EnvironmentID: f.number("environment_id"), ManualUpdates: f.bool("manual_updates"), IdleMinutes: f.number("idle_minutes"),
		ReservationID:  f.number("reservation_id"),
		UpdateStrategy: models.UpdateStrategy(f.text("update_strategy")),
		ServedInput:    models.ServedInput{Context: f.number("context"), Batch: f.number("batch"), ServiceType: f.text("service_type")}}
	if err := f.errWith(in.Check()); err != nil {
		return redirect{}, err
	}
	d, err := a.Workspaces.Deploy(ctx, actorOf(ctx), in)
	return redirect{path("deployments", d.ID), models.Say("Deployment %s is deploying.", d.Name)}, err
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
	span := c.QueryParam("span")
	if !slices.Contains(workspaces.MetricsSpans, span) {
		span = workspaces.MetricsSpans[0]
	}
	metrics, err := a.Workspaces.DeploymentMetrics(ctx, actorOf(ctx), d.ID, span)
	return web.DeploymentPage(web.DeploymentDetail{DeploymentRow: deploymentRow(d), Events: d.Events, CurrentID: d.CurrentID,
		Devices: devicesOf(view, d.HolderID, actorOf(ctx).User.ID), Reservation: d.Reservation, Metrics: metrics}), err
}

func (a *App) updateDeploymentPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	d, err := a.Workspaces.UpdateDeployment(ctx, actorOf(ctx), number(c, "id"), models.UpdateStrategy(f.text("update_strategy")))
	if d.Updating {
		return redirect{path("deployments", d.ID), models.Say("Deployment %s is stopping for its update.", d.Name)}, err
	}
	return redirect{path("deployments", d.ID), models.Say("Deployment %s is deploying.", d.Name)}, err
}

func (a *App) confirmStopDeploymentPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	d, err := a.Workspaces.ViewDeployment(ctx, actorOf(ctx), number(c, "id"))
	return confirmPage(c, web.ConfirmStopDeployment(d.DeploymentView)), err
}

func (a *App) stopDeploymentPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	d, err := a.Workspaces.StopDeployment(ctx, actorOf(ctx), number(c, "id"))
	return redirect{path("deployments", d.ID), models.Say("Deployment %s is stopping.", d.Name)}, err
}
