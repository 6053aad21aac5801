package handlers

import (
	"context"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool/projects"
	"weir/web"
)

// fitProjects is the number of projects for which the home page shows the available
// sizes.
const fitProjects = 4

func (a *App) homePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor := actorOf(ctx)
	rows, err := a.workspaceRows(ctx, models.WorkspaceFilter{UserID: actor.User.ID, States: models.ActiveStates}, models.Page{Limit: pageSize})
	if err != nil {
		return nil, err
	}
	mine, err := a.Projects.Participations(ctx, actor, actor.User.ID)
	if err != nil {
		return nil, err
	}
	v := web.HomeView{Workspaces: rows}
	for i, m := range mine {
		v.CanLaunch = v.CanLaunch || m.CanLaunch
		var fits []web.AvailableRow
		if m.CanLaunch && i < fitProjects {
			if fits, err = a.availableRows(c, m.Project.ID); err != nil {
				return nil, err
			}
		}
		v.Projects = append(v.Projects, web.ProjectCard{Fits: fits, ID: m.Project.ID, Name: m.Project.Name, Role: m.Member.RoleName,
			Meters: web.LimitMeters(m.Use.InUseByMember, models.Resources{}, m.Use.Limit), Until: m.Member.Until, EndsAt: m.Project.EndsAt,
			Active: m.Project.Active(a.Store.Now()), CanLaunch: m.CanLaunch})
	}
	if v.Extensions, err = a.myExtensions(ctx, mine); err != nil {
		return nil, err
	}
	if len(mine) == 0 {
		others, err := a.Projects.ListProjects(ctx, actor, projects.ProjectQuery{}, models.Page{Limit: 1})
		if err != nil {
			return nil, err
		}
		v.OthersProjects = len(others) > 0
	}
	return web.HomePage(v), nil
}

// myExtensions are those that concern the actor's own projects now.
func (a *App) myExtensions(ctx context.Context, mine []projects.Participation) (list []models.Extension, err error) {
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

// recently is how long the home page shows an end date that has passed.
const recently = 30 * 24 * time.Hour
