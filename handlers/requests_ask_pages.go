package handlers

import (
	"slices"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/web"
)

// askForm is the form of a new request, as it was typed or, when typed is nil,
// with what there is now.
func (a *App) askForm(c echo.Context, kind string, project int64, typed *web.Form) (templ.Component, error) {
	if !slices.Contains(models.RequestKinds, kind) {
		return web.NewRequestPage(web.NewRequestView{}), nil
	}
	v := web.NewRequestView{Kind: kind, ProjectID: project, Form: formOf(0)}
	var err error
	switch {
	case kind == models.RequestProject:
		v.ProjectID = 0
	case kind == models.RequestJoin && project != 0:
		err = a.askToJoin(c, &v)
	case kind == models.RequestJoin:
	case project == 0:
		err = a.askWhere(c, &v)
	case kind == models.RequestDeadline:
		err = a.askForDeadline(c, &v)
	default:
		err = a.askIn(c, &v)
	}
	if typed != nil {
		v.Form = *typed
	}
	if err == nil && kind != models.RequestJoin {
		v.Preview, err = a.previewRequest(c.Request().Context(), v.ProjectID, kind, roleIn(models.Requested{}, v.Form), v.Form)
		if v.Preview != nil {
			v.Preview.Requested = true
		}
	}
	return web.NewRequestPage(v), err
}

// askToJoin names the project of a link, and nothing else of it.
func (a *App) askToJoin(c echo.Context, v *web.NewRequestView) error {
	ctx := c.Request().Context()
	p, err := a.Requests.Joinable(ctx, actorOf(ctx), v.ProjectID)
	v.Project = p.Name
	return err
}

// askWhere offers the projects of which something can be asked.
func (a *App) askWhere(c echo.Context, v *web.NewRequestView) error {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	mine, err := a.Projects.Participations(ctx, actor, actor.User.ID)
	for _, m := range mine {
		v.Projects = append(v.Projects, web.Option{Value: strconv.FormatInt(m.Project.ID, 10), Label: m.Project.Name})
	}
	return err
}

// askForDeadline shows when the own participation ends.
func (a *App) askForDeadline(c echo.Context, v *web.NewRequestView) error {
	ctx := c.Request().Context()
	m, p, err := a.Requests.Place(ctx, actorOf(ctx), v.ProjectID)
	v.Project, v.Ends = p.Name, ends(a.spoken(c), m.Until)
	return err
}

// askIn shows the project that something is asked of, as it is.
func (a *App) askIn(c echo.Context, v *web.NewRequestView) error {
	ctx := c.Request().Context()
	p, left, err := a.remaining(ctx, v.ProjectID)
	if err != nil {
		return err
	}
	v.Project, v.Ends = p.Name, ends(a.spoken(c), p.EndsAt)
	switch v.Kind {
	case models.RequestQuota:
		v.Now = &p.Quota
		putResources(v.Form, "quota.quota", p.Quota)
	case models.RequestRole:
		v.Remaining = &left
	case models.RequestLimit:
		v.Remaining = &left
		return a.requestLimit(c, v)
	}
	return nil
}

// requestLimit offers the project's roles; the own one is chosen, unless the
// link names another.
func (a *App) requestLimit(c echo.Context, v *web.NewRequestView) error {
	ctx := c.Request().Context()
	roles, err := a.Projects.Roles(ctx, actorOf(ctx), v.ProjectID)
	if err != nil {
		return err
	}
	v.Roles = roleChoices(roles)
	chosen := c.QueryParam("role_id")
	if m, _, err := a.Requests.Place(ctx, actorOf(ctx), v.ProjectID); chosen == "" && err == nil {
		chosen = strconv.FormatInt(m.RoleID, 10)
	}
	for _, r := range roles {
		if strconv.FormatInt(r.ID, 10) == chosen {
			v.Form.Values["limit.role_id"], v.Now = chosen, &r.Limit
			putResources(v.Form, "limit.limit", r.Limit)
		}
	}
	return nil
}
