package handlers

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) projectsRoutes(p *echo.Group) {
	p.GET("/projects", a.projectsPage)
	p.POST("/projects", a.submit(a.projectFormPage, a.createProjectPage))
	p.GET("/projects/new", a.page(a.projectFormPage))
	p.GET("/projects/:id", a.cached(a.inOneState(a.projectPage)))
	p.POST("/projects/:id", a.submit(a.projectFormPage, a.updateProjectPage))
	p.GET("/projects/:id/edit", a.page(a.projectFormPage))
}

// projectsPage lists projects, chosen and ordered by the address.
func (a *App) projectsPage(c echo.Context) error {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	f := &form{values: c.QueryParams()}
	in := projects.ProjectQuery{Search: f.text("q"), State: f.text("state"), Sort: f.text("sort"), Order: f.text("order")}
	v := web.ProjectsView{Form: f.asSubmitted(), Sort: in.Sort, Down: in.Descending()}
	list, err := a.Projects.ListProjects(ctx, actor, in, pageAfter(c))
	if models.KindOf(err) == models.KindInvalid {
		v.Form = v.Form.Refuse(err)
		return a.render(c, http.StatusUnprocessableEntity, web.ProjectsPage(v))
	}
	if err != nil {
		return err
	}
	v.Next = following(c, list, in.After)
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
		v.Rows = append(v.Rows, web.ProjectRow{ID: p.ID, Name: p.Name, Role: roles[p.ID], Members: p.Members, Workspaces: p.ActiveWorkspaces,
			InUse: p.InUse, Allocated: p.Allocated, Quota: p.Quota, StartsAt: p.StartsAt, EndsAt: p.EndsAt, Active: p.Active(a.Store.Now())})
	}
	return err
}

func (f *form) projectInput() projects.ProjectInput {
	return projects.ProjectInput{Name: f.text("name"), Description: f.text("description"), Quota: f.resources("quota"),
		StartsAt: f.day("starts_at"), EndsAt: f.lastDay("ends_at"), Launch: f.launch("launch."),
		Outgoing: f.outgoing(), Priority: f.number("priority"), Version: f.version(), Confirmation: f.confirmation()}
}

// confirmation is what a form says to allocations above the pool's capacity.
func (f *form) confirmation() projects.Confirmation {
	return projects.Confirmation{Confirm: f.bool("confirm"), Reason: f.text("reason")}
}

// outgoing is nil in the form of those who cannot change it.
func (f *form) outgoing() *models.Outgoing {
	access := f.text("outgoing.access")
	if access == "" {
		return nil
	}
	return &models.Outgoing{Access: models.OutgoingAccess(access), Hosts: strings.Fields(f.text("outgoing.hosts"))}
}

// projectFormPage is the form of a project, or of a new one.
func (a *App) projectFormPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	id := optionalNumber(c, "id")
	form, err := a.Projects.ProjectForm(ctx, actorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	p := form.Project
	v := web.ProjectFormView{Form: formOf(p.Version), ID: id, Name: p.Name, Describing: !form.Permissions.EditProject}
	if id != 0 {
		v.Form.Values["name"], v.Form.Values["description"] = p.Name, p.Description
		putResources(v.Form, "quota", p.Quota)
		putDay(v.Form, "starts_at", &p.StartsAt)
		putLastDay(v.Form, "ends_at", p.EndsAt)
		putLaunch(v.Form, "launch.", p.Launch)
		v.Form.Values["outgoing.access"] = string(p.Outgoing.Access)
		v.Form.Values["outgoing.hosts"] = strings.Join(p.Outgoing.Hosts, "\n")
		v.Form.Values["priority"] = strconv.FormatInt(p.Priority, 10)
	}
	v.Form = submittedOr(c, v.Form)
	switch {
	case id == 0:
		v.Preview, err = a.previewNewProject(ctx, v.Form)
	case !v.Describing:
		v.Preview, err = a.previewForm(ctx, id, v.Form, projectPreview)
	}
	return web.ProjectFormPage(v), err
}

func (a *App) createProjectPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	in := f.projectInput()
	if err := f.errWith(in.Check(a.Store.Now())); err != nil {
		return redirect{}, err
	}
	p, err := a.Projects.CreateProject(ctx, actorOf(ctx), in)
	return redirect{path("projects", p.ID), models.Say("Project %s created. Add roles and members next.", p.Name)}, err
}

func (a *App) updateProjectPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	in := f.projectInput()
	if err := f.errWith(in.Check(a.Store.Now())); err != nil {
		return redirect{}, err
	}
	p, err := a.Projects.UpdateProject(ctx, actorOf(ctx), number(c, "id"), in)
	return redirect{path("projects", p.ID), models.Say("Project %s updated.", p.Name)}, err
}

func (a *App) projectPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor, id := actorOf(ctx), number(c, "id")
	p, err := a.Projects.Project(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	may := a.Projects.Permissions(actor, id)
	v := web.ProjectView{Project: p.Project, InUse: p.InUse, Allocated: p.Allocated, CanEdit: may.EditProject, CanDescribe: may.Describe,
		CanManage: may.EditRoles, CanAdmit: may.EditMembers, CanAudit: may.ReadAudit, Has: may.Has, CanAsk: may.Request,
		Portal: a.portalURL(c.Request()), CanLaunch: may.Launch && p.Active(a.Store.Now())}
	roles, err := a.Projects.Roles(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	for _, r := range roles {
		v.Roles = append(v.Roles, web.RoleRow{Role: r.Role, Members: r.Members})
	}
	if err := a.projectMembers(ctx, c, &v); err != nil {
		return nil, err
	}
	if v.CanLaunch {
		available, err := a.Workspaces.Available(ctx, actorOf(ctx), id)
		if err != nil {
			return nil, err
		}
		v.Available = availableRows(available)
	}
	if err := a.projectEnds(ctx, &v); err != nil {
		return nil, err
	}
	v.Workspaces, err = a.workspaceRows(ctx, activeWorkspaces(id, 0), store.Page{Limit: 200})
	return web.ProjectPage(v), err
}

func (a *App) projectMembers(ctx context.Context, c echo.Context, v *web.ProjectView) error {
	actor := actorOf(ctx)
	page := pageAfter(c)
	members, err := a.Projects.Members(ctx, actor, v.Project.ID, page)
	if err != nil {
		return err
	}
	usage, err := a.Storage.Usage(ctx, actor, v.Project.ID, page)
	v.Storage = usage.StorageUse
	v.QuotaEnforced = a.Files.QuotaEnforced(v.Project.ID)
	files := map[int64]models.MemberStorage{}
	for _, m := range usage.Members {
		files[m.MemberID] = m
	}
	for _, m := range members {
		me := m.UserID == actor.User.ID
		if me {
			v.MyRole = m.RoleName
		}
		v.Members = append(v.Members, web.MemberRow{Member: m.MemberView, InUse: m.InUse, Files: files[m.ID], Me: me})
	}
	v.MoreMembers = nextPage(c, members, func(m projects.MemberView) int64 { return m.ID })
	if err == nil && v.MyRole == "" && (v.MoreMembers != "" || page.After > 0) { // perhaps a member on another page
		var roles map[int64]string
		roles, err = a.Projects.RolesIn(ctx, actor)
		v.MyRole = roles[v.Project.ID]
	}
	return err
}
