package handlers

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/web"
)

// newRequestPage is the form of a new request, of the kind and for the project that
// the link names or the form was sent with.
func (a *App) newRequestPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	kind, about := c.QueryParam("kind"), c.QueryParam("project_id")
	if sent := submittedOr(c, web.Form{}); sent.Values != nil {
		kind = sent.Values["kind"]
		about = sent.Values[kind+".project_id"]
	}
	if !slices.Contains(models.RequestKinds, kind) {
		return web.NewRequestPage(web.NewRequestView{}), nil
	}
	project, err := strconv.ParseInt(strings.TrimSpace(about), 10, 64)
	if err != nil || project < 0 {
		project, err = 0, nil
	}
	v := web.NewRequestView{Kind: kind, ProjectID: project, Form: formOf(0)}
	switch {
	case kind == models.RequestProject:
		v.ProjectID = 0
	case kind == models.RequestJoin && project != 0:
		err = a.fillJoinRequest(c, &v)
	case kind == models.RequestJoin:
	case project == 0:
		err = a.fillProjectChoices(c, &v)
	case kind == models.RequestDeadline:
		err = a.fillDeadlineRequest(c, &v)
	default:
		err = a.fillProjectRequest(c, &v)
	}
	v.Form = submittedOr(c, v.Form)
	if err == nil && kind != models.RequestJoin {
		v.Preview, err = a.previewRequest(ctx, v.ProjectID, kind, roleIn(models.Requested{}, v.Form), v.Form)
		if v.Preview != nil {
			v.Preview.Requested = true
		}
	}
	return web.NewRequestPage(v), err
}

// fillJoinRequest names the project of a link, and nothing else of it.
func (a *App) fillJoinRequest(c echo.Context, v *web.NewRequestView) error {
	ctx := c.Request().Context()
	p, err := a.Requests.Joinable(ctx, actorOf(ctx), v.ProjectID)
	v.Project = p.Name
	return err
}

// fillProjectChoices lists the projects to choose from.
func (a *App) fillProjectChoices(c echo.Context, v *web.NewRequestView) error {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	mine, err := a.Projects.Memberships(ctx, actor, actor.User.ID)
	for _, m := range mine {
		v.Projects = append(v.Projects, web.Option{Value: strconv.FormatInt(m.Project.ID, 10), Label: m.Project.Name})
	}
	return err
}

// fillDeadlineRequest shows when the own membership ends.
func (a *App) fillDeadlineRequest(c echo.Context, v *web.NewRequestView) error {
	ctx := c.Request().Context()
	m, p, err := a.Requests.Membership(ctx, actorOf(ctx), v.ProjectID)
	v.Project, v.Ends = p.Name, m.Until
	return err
}

// fillProjectRequest shows the current state of the project.
func (a *App) fillProjectRequest(c echo.Context, v *web.NewRequestView) error {
	ctx := c.Request().Context()
	p, err := a.Projects.Project(ctx, actorOf(ctx), v.ProjectID)
	if err != nil {
		return err
	}
	left := p.Quota.Sub(p.Allocated)
	v.Project, v.Ends = p.Name, p.EndsAt
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
	if m, _, err := a.Requests.Membership(ctx, actorOf(ctx), v.ProjectID); chosen == "" && err == nil {
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
