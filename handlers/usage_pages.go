package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) usageRoutes(p *echo.Group) {
	p.GET("/usage", a.spanPage(a.allUsagePage))
	p.GET("/projects/:id/usage", a.spanPage(a.usagePage))
}

// spanPage shows a page for a span of time; if the one in the address is refused, for the default span, with what
// was sent and the reason.
func (a *App) spanPage(build pageFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := a.showPage(c, http.StatusOK, build)
		if models.KindOf(err) != models.KindInvalid {
			return err
		}
		f := form{values: c.QueryParams()}
		return a.renderSubmitted(c, http.StatusUnprocessableEntity, f.asSubmitted().Refuse(err), build)
	}
}

// usageQuery is the span of time in an address, unless it was refused.
func usageQuery(c echo.Context) projects.UsageQuery {
	if submittedOr(c, web.Form{}).Failed() {
		return projects.UsageQuery{}
	}
	return projects.UsageQuery{From: c.QueryParam("from"), Until: c.QueryParam("until")}
}

func (a *App) usageRange(c echo.Context, from, until time.Time) web.UsageRange {
	f := form{values: c.QueryParams()}
	return web.UsageRange{Path: c.Request().URL.Path, From: from, Until: until, Now: a.Store.Now(), Form: submittedOr(c, f.asSubmitted())}
}

// allUsagePage shows the usage of all projects.
func (a *App) allUsagePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	u, err := a.Projects.AllUsage(ctx, actorOf(ctx), usageQuery(c), pageAfter(c))
	if err != nil {
		return nil, err
	}
	v := web.AllUsageView{UsageRange: a.usageRange(c, u.From, u.Until), Steps: usageSteps(u.Steps), Used: u.Used, Simulated: u.Simulated,
		Capacity: u.Capacity}
	for _, p := range u.Projects {
		v.Rows = append(v.Rows, web.ProjectUse{ID: p.Project.ID, Name: p.Project.Name, Quota: p.Project.Quota, Used: p.Used,
			OfQuota: p.OfQuota.GPUCores, OfTotal: p.OfTotal.GPUCores})
	}
	if u.Next > 0 {
		v.Next = pageAt(c, store.Page{After: u.Next})
	}
	return web.AllUsagePage(v), nil
}

// usagePage shows a project's use, allocation and quota over time.
func (a *App) usagePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor, id, in := actorOf(ctx), number(c, "id"), usageQuery(c)
	u, err := a.Projects.Usage(ctx, actor, id, in)
	if err != nil {
		return nil, err
	}
	people, err := a.Projects.UsageOfPeople(ctx, actor, id, in, pageAfter(c))
	if err != nil {
		return nil, err
	}
	v := usageView(u)
	v.UsageRange = a.usageRange(c, u.From, u.Until)
	v.SeesAll = a.Projects.CanReadUsage(actor, id)
	for _, p := range people {
		v.People = append(v.People, web.PersonUse{Name: p.UserName, Email: p.UserEmail, Role: p.RoleName, Me: p.UserID == actor.User.ID,
			Limit: p.Limit, InUse: p.InUse, Used: p.Used, OfTotal: p.OfTotal.GPUCores})
	}
	if v.SeesAll {
		v.Next = nextPage(c, people, func(p projects.PersonUsage) int64 { return p.ID })
	}
	return web.UsagePage(v), nil
}

func usageSteps(steps []projects.UsageStep) []web.UsageStep {
	return models.Map(steps, func(s projects.UsageStep) web.UsageStep { return web.UsageStep(s) })
}

func usageView(u projects.ProjectUsage) web.UsageView {
	v := web.UsageView{Project: u.Project.Project, Used: u.Used, Left: u.Left, Allocated: u.Project.Allocated, Simulated: u.Simulated}
	v.Steps = usageSteps(u.Steps)
	for _, r := range u.Roles {
		v.Roles = append(v.Roles, web.RoleUse{Name: r.Name, Members: r.Members, Limit: r.Limit, Allocated: r.Allocated, InUse: r.InUse,
			Used: r.Used, OfTotal: r.OfTotal.GPUCores})
	}
	return v
}
