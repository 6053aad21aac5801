package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/pool/projects"
	"weir/web"
)

// fitProjects is for how many projects the home page says what fits.
const fitProjects = 4

func (a *App) homePage(c echo.Context) error {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	rows, err := a.workspaceRows(ctx, models.WorkspaceFilter{UserID: actor.User.ID, States: models.LiveStates}, models.Page{Limit: listLimit})
	if err != nil {
		return err
	}
	mine, err := a.Projects.Participations(ctx, actor, actor.User.ID)
	if err != nil {
		return err
	}
	v := web.HomeView{Workspaces: rows, CanCreateProject: a.Access.May(actor, policies.Platform, policies.ProjectWrite)}
	now := a.Store.Now()
	for i, m := range mine {
		active := m.Project.Active(now)
		launch := active && m.Member.Permits().Contains(models.WorkspaceLaunch)
		v.CanLaunch = v.CanLaunch || launch
		var fits []web.AvailableRow
		if launch && i < fitProjects {
			if fits, err = a.availableRows(c, m.Project.ID); err != nil {
				return err
			}
		}
		v.Projects = append(v.Projects, web.ProjectCard{Fits: fits, ID: m.Project.ID, Name: m.Project.Name, Role: m.Member.RoleName,
			Meters: web.LimitMeters(m.Use.InUseByMember, models.Resources{}, m.Use.Limit), Until: m.Member.Until, EndsAt: m.Project.EndsAt,
			Active: active, CanLaunch: launch})
	}
	if v.Extensions, err = a.myExtensions(ctx, mine); err != nil {
		return err
	}
	if len(mine) == 0 {
		others, err := a.Projects.ListProjects(ctx, actor, projects.ProjectQuery{}, models.Page{Limit: 1})
		if err != nil {
			return err
		}
		v.OthersProjects = len(others) > 0
	}
	return a.render(c, http.StatusOK, web.HomePage(v))
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

// recently is how long after an end the home page speaks of it.
const recently = 30 * 24 * time.Hour
