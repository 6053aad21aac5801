package handlers

import (
	"context"
	"slices"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
	"weir/web"
	"weir/workspaces"
)

// availableProjects is the number of projects for which the home page shows the available
// sizes.
const availableProjects = 4

func (a *App) homePage(ctx context.Context, _ echo.Context) (templ.Component, error) {
	actor := actorOf(ctx)
	rows, err := a.workspaceRows(ctx, activeWorkspaces(0, actor.User.ID), store.Page{Limit: pageSize})
	if err != nil {
		return nil, err
	}
	mine, err := a.Projects.Memberships(ctx, actor, actor.User.ID)
	if err != nil {
		return nil, err
	}
	available, err := a.availableIn(ctx, mine)
	if err != nil {
		return nil, err
	}
	v := web.HomeView{Workspaces: rows}
	for _, m := range mine {
		v.Projects = append(v.Projects, web.ProjectCard{Available: availableRows(available[m.Project.ID]), ID: m.Project.ID, Name: m.Project.Name,
			Role:   m.Member.RoleName,
			Meters: web.LimitMeters(m.Use.InUseByMember, models.Resources{}, m.Use.Limit), Until: m.Member.Until, EndsAt: m.Project.EndsAt,
			Active: m.Project.Active(a.Store.Now()), CanLaunch: m.CanLaunch})
	}
	if v.Extensions, err = a.myExtensions(ctx, mine); err != nil {
		return nil, err
	}
	if len(mine) == 0 {
		others, err := a.Projects.ListProjects(ctx, actor, projects.ProjectQuery{}, store.Page{Limit: 1})
		if err != nil {
			return nil, err
		}
		v.OthersProjects = len(others) > 0
	}
	return web.HomePage(v), nil
}

// availableIn is the availability of the common sizes in the first projects in which the actor can launch.
func (a *App) availableIn(ctx context.Context, mine []projects.Membership) (map[int64][]workspaces.SizeAvailability, error) {
	var list []models.Project
	for _, m := range mine {
		if m.CanLaunch && len(list) < availableProjects {
			list = append(list, m.Project)
		}
	}
	return a.Workspaces.AvailableIn(ctx, actorOf(ctx), list)
}

// myExtensions are those that concern the actor's own projects now.
func (a *App) myExtensions(ctx context.Context, mine []projects.Membership) ([]models.Extension, error) {
	all, err := a.Requests.ExtensionsIn(ctx, actorOf(ctx), mine)
	return slices.DeleteFunc(all, func(e models.Extension) bool { return a.Store.Now().Sub(e.EndsAt) >= recently }), err
}

// recently is how long the home page shows an end date that has passed.
const recently = 30 * 24 * time.Hour
