package handlers

import (
	"context"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/pool/projects"
	"weir/web"
)

func (a *App) usageRoutes(p *echo.Group) {
	p.GET("/projects/:id/usage", a.page(a.usagePage))
}

// usualDays is the span of time that a project's use is shown for.
const usualDays = 30

// usagePage shows a project's use, allocation and quota over time.
func (a *App) usagePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor, id, days := actorOf(ctx), number(c, "id"), int64(usualDays)
	if n, err := strconv.ParseInt(c.QueryParam("days"), 10, 64); err == nil || c.QueryParam("days") != "" {
		days = n
	}
	u, err := a.Projects.Usage(ctx, actor, id, days)
	if err != nil {
		return nil, err
	}
	people, err := a.Projects.UsageOfPeople(ctx, actor, id, days, pageAfter(c, pageSize))
	if err != nil {
		return nil, err
	}
	v := usageView(u, days)
	v.SeesAll = a.Projects.CanReadUsage(actor, id)
	for _, p := range people {
		v.People = append(v.People, web.PersonUse{Name: p.UserName, Email: p.UserEmail, Role: p.RoleName, Me: p.UserID == actor.User.ID,
			Limit: p.Limit, InUse: p.InUse, Used: p.Used})
	}
	if n := len(people); n > 0 && v.SeesAll {
		v.Next = nextPage(c, n, pageSize, people[n-1].ID)
	}
	return web.UsagePage(v), nil
}

func usageView(u projects.ProjectUsage, days int64) web.UsageView {
	v := web.UsageView{Project: u.Project.Project, Days: days, From: u.From, To: u.To, Used: u.Used, Left: u.Left, Allocated: u.Project.Allocated, Simulated: u.Simulated}
	for _, s := range u.Steps {
		v.Steps = append(v.Steps, web.UsageStep(s))
	}
	for _, r := range u.Roles {
		v.Roles = append(v.Roles, web.RoleUse{Name: r.Name, Members: r.Members, Limit: r.Limit, Allocated: r.Allocated, InUse: r.InUse, Used: r.Used})
	}
	return v
}
