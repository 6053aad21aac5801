package handlers

import (
	"context"
	"net/http"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) projectsRoutes(p *echo.Group) {
	p.GET("/projects", a.projectsPage)
	p.POST("/projects", a.createProjectPage)
	p.GET("/projects/new", a.newProjectPage)
	p.GET("/projects/:id", a.projectPage)
	p.POST("/projects/:id", a.updateProjectPage)
	p.GET("/projects/:id/edit", a.editProjectPage)
}

// projectsPage lists projects, chosen and ordered by the address.
func (a *App) projectsPage(c echo.Context) error {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	f := &form{values: c.QueryParams()}
	in := projects.ProjectQuery{Search: f.text("search"), State: f.text("state"), Sort: f.text("sort"), Down: f.text("down") == "true"}
	v := web.ProjectsView{Form: f.asTyped(), Sort: in.Sort, Down: in.Down, CanCreate: a.Access.May(actor, policies.Platform, policies.ProjectWrite)}
	list, err := a.Projects.ListProjects(ctx, actor, in, pageAfter(c, listLimit))
	if models.KindOf(err) == models.KindInvalid {
		v.Form = v.Form.Refuse(err)
		return a.render(c, http.StatusUnprocessableEntity, web.ProjectsPage(v))
	}
	if err != nil {
		return err
	}
	if n := len(list); n > 0 {
		v.Next = nextPage(c, n, listLimit, list[n-1].ID)
	}
	v.Many = len(list) > fewProjects || v.Next != "" || c.QueryParam("cursor") != ""
	if err := a.projectRows(c, &v, list); err != nil {
		return err
	}
	return a.render(c, http.StatusOK, web.ProjectsPage(v))
}

// fewProjects are found without a search.
const fewProjects = 8

func (a *App) projectRows(c echo.Context, v *web.ProjectsView, list []projects.ProjectView) error {
	ctx := c.Request().Context()
	roles, err := a.Projects.RolesIn(ctx, actorOf(ctx))
	v.Mine = len(roles) > 0
	for _, p := range list {
		v.Rows = append(v.Rows, web.ProjectRow{ID: p.ID, Name: p.Name, Role: roles[p.ID], Members: p.Members, Workspaces: p.Live,
			InUse: p.InUse, Allocated: p.Allocated, Quota: p.Quota, StartsAt: p.StartsAt, EndsAt: p.EndsAt, Active: p.Active(a.Store.Now())})
	}
	return err
}

func (f *form) projectInput() projects.ProjectInput {
	return projects.ProjectInput{Name: f.text("name"), Description: f.text("description"), Quota: f.resources("quota"),
		StartsAt: f.day("starts_at"), EndsAt: f.day("ends_at"), Launch: f.launch("launch."),
		Priority: f.number("priority"), Version: f.version()}
}

func (a *App) newProjectPage(c echo.Context) error {
	if err := a.Access.Check(actorOf(c.Request().Context()), policies.Platform, policies.ProjectWrite); err != nil {
		return err
	}
	return a.render(c, http.StatusOK, web.ProjectFormPage(web.ProjectFormView{Form: formOf(0)}))
}

func (a *App) createProjectPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := f.projectInput()
	var p models.Project
	if err = f.err(nil); err == nil {
		p, err = a.Projects.CreateProject(c.Request().Context(), actorOf(c.Request().Context()), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			return web.ProjectFormPage(web.ProjectFormView{Form: f.asTyped().Refuse(err)}), nil
		})
	}
	return a.done(c, path("projects", p.ID), models.Say("Project %s created. Add roles and members next.", p.Name))
}

func (a *App) editProjectPage(c echo.Context) error {
	ctx := c.Request().Context()
	p, err := a.Projects.Project(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	if err := a.Access.Check(actorOf(ctx), p.ID, policies.ProjectDescribe); err != nil {
		return err
	}
	f := formOf(p.Version)
	f.Values["name"], f.Values["description"] = p.Name, p.Description
	putResources(f, "quota", p.Quota)
	putDay(f, "starts_at", &p.StartsAt)
	putDay(f, "ends_at", p.EndsAt)
	putLaunch(f, "launch.", p.Launch)
	f.Values["priority"] = strconv.FormatInt(p.Priority, 10)
	page, err := a.projectForm(ctx, p.ID, f)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

// projectForm is the form of a project with what stands in it.
func (a *App) projectForm(ctx context.Context, id int64, f web.Form) (templ.Component, error) {
	p, err := a.Projects.Project(ctx, actorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	v := web.ProjectFormView{Form: f, ID: id, Name: p.Name, Describing: a.describesOnly(ctx, id)}
	if !v.Describing {
		v.Preview, err = a.previewForm(ctx, id, f, quotaPreview(""))
	}
	return web.ProjectFormPage(v), err
}

func (a *App) updateProjectPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if f.bool("preview") {
		return a.previewed(c, func() (templ.Component, error) { return a.projectForm(ctx, number(c, "id"), f.asTyped()) })
	}
	id, in := number(c, "id"), f.projectInput()
	var p models.Project
	if err = f.err(nil); err == nil {
		p, err = a.Projects.UpdateProject(ctx, actorOf(ctx), id, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.projectForm(ctx, id, f.asTyped().Refuse(err)) })
	}
	a.Wake() // its period may have ended, or its quota may have room for who waits
	return a.done(c, path("projects", p.ID), models.Say("Project %s updated.", p.Name))
}

// describesOnly tells whether the actor changes what is said of the project, not
// what it gets.
func (a *App) describesOnly(ctx context.Context, project int64) bool {
	return !a.Access.May(actorOf(ctx), project, policies.ProjectWrite)
}

func (a *App) projectPage(c echo.Context) error {
	ctx := c.Request().Context()
	actor, id := actorOf(ctx), number(c, "id")
	p, err := a.Projects.Project(ctx, actor, id)
	if err != nil {
		return err
	}
	may := a.Projects.Permissions(actor, id)
	v := web.ProjectView{Project: p.Project, InUse: p.InUse, Allocated: p.Allocated, CanEdit: may.EditProject, CanDescribe: may.Describe,
		CanManage: may.EditRoles, CanAdmit: may.EditMembers, CanAudit: may.ReadAudit, Has: may.Has, CanAsk: actor.MemberOf(id),
		CanLaunch: may.Launch && p.Active(a.Store.Now()), ShowUsage: true}
	roles, err := a.Projects.Roles(ctx, actor, id)
	if err != nil {
		return err
	}
	for _, r := range roles {
		v.Roles = append(v.Roles, web.RoleRow{Role: r.Role, Members: r.Members})
	}
	if err := a.projectMembers(c, &v); err != nil {
		return err
	}
	if v.CanLaunch {
		if v.Fits, err = a.availableRows(c, id); err != nil {
			return err
		}
	}
	if err := a.projectEnds(ctx, &v); err != nil {
		return err
	}
	v.Workspaces, err = a.workspaceRows(ctx, models.WorkspaceFilter{ProjectID: id, States: models.LiveStates}, models.Page{Limit: 200})
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, web.ProjectPage(v))
}

func (a *App) projectMembers(c echo.Context, v *web.ProjectView) error {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	page := pageAfter(c, listLimit)
	members, err := a.Projects.Members(ctx, actor, v.Project.ID, page)
	for _, m := range members {
		me := m.UserID == actor.User.ID
		if me {
			v.MyRole = m.RoleName
		}
		v.Members = append(v.Members, web.MemberRow{Member: m.MemberView, InUse: m.InUse, Me: me})
	}
	if n := len(members); n > 0 {
		v.MoreMembers = nextPage(c, n, listLimit, members[n-1].ID)
	}
	v.MembersOnNext = page.After > 0
	return err
}

// remaining is what a project's quota has left for further peaks.
func (a *App) remaining(ctx context.Context, project int64) (projects.ProjectView, models.Resources, error) {
	p, err := a.Projects.Project(ctx, actorOf(ctx), project)
	return p, p.Quota.Sub(p.Allocated), err
}
