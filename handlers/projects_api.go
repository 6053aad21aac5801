package handlers

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
)

func (a rest) projectsOperations(s section) {
	register(a, s, route{http.MethodGet, "/projects", 200, "list-projects", models.Say("List projects visible to you")}, a.listProjects)
	register(a, s, route{http.MethodGet, "/projects.csv", 200, "download-projects", models.Say("Export projects visible to you as CSV")},
		a.downloadProjects)
	describeDownload(s, "/projects.csv", "text/csv")
	register(a, s, route{http.MethodPost, "/projects", 201, "create-project", models.Say("Create a project; requires platform administrator")},
		a.createProject)
	register(a, s, route{http.MethodGet, "/projects/{id}", 200, "get-project",
		models.Say("Get a project with its quota, allocations and use")}, a.getProject)
	register(a, s, route{http.MethodPut, "/projects/{id}", 200, "update-project",
		models.Say("Update a project's description, quota, period and launch parameters; requires platform administrator")}, a.updateProject)
}

// Project is a team with its quota.
type Project struct {
	ID          int64                   `json:"id"`
	Name        string                  `json:"name"`
	Description string                  `json:"description"`
	Quota       models.Resources        `json:"quota"`
	Allocated   models.Resources        `json:"allocated" doc:"sum of the members' limits"`
	InUse       models.Resources        `json:"in_use" doc:"resources in use by workspaces"`
	Left        models.Resources        `json:"remaining" doc:"remaining quota: quota minus allocated"`
	StartsAt    time.Time               `json:"starts_at" doc:"start of the period of use"`
	EndsAt      *time.Time              `json:"ends_at,omitempty" doc:"end of the period of use; absent if open-ended"`
	State       string                  `json:"state" enum:"planned,active,ended" doc:"State of the period of use."`
	Launch      models.LaunchParameters `json:"launch" doc:"initial launch parameters"`
	Outgoing    models.Outgoing         `json:"outgoing" doc:"machines to which what runs in the project may connect"`
	Priority    int64                   `json:"priority" doc:"queue priority, 1 to 100; higher is scheduled first"`
	CreatedAt   time.Time               `json:"created_at"`
}

func projectOf(p projects.ProjectView, now time.Time) Project {
	return Project{ID: p.ID, Name: p.Name, Description: p.Description, Quota: p.Quota, Allocated: p.Allocated, InUse: p.InUse,
		Left: p.Quota.Sub(p.Allocated), StartsAt: p.StartsAt.UTC(), EndsAt: utc(p.EndsAt), State: p.State(now),
		Launch: p.Launch, Outgoing: p.Outgoing, Priority: p.Priority, CreatedAt: p.CreatedAt.UTC()}
}

// ProjectList selects a page of projects.
type ProjectList struct {
	Paging
	projects.ProjectQuery
}

func (a rest) listProjects(ctx context.Context, in *ProjectList) (*Response[List[Project]], error) {
	return listedAfter(in.Paging, in.After, func(page store.Page) ([]projects.ProjectView, error) {
		return a.Projects.ListProjects(ctx, actorOf(ctx), in.ProjectQuery, page)
	}, func(p projects.ProjectView) Project { return projectOf(p, a.Store.Now()) })
}

func (a rest) downloadProjects(ctx context.Context, in *projects.ProjectQuery) (*huma.StreamResponse, error) {
	columns := []string{"id", "name", "starts_at", "ends_at", "members", "active_workspaces"}
	for _, of := range []string{"quota_", "allocated_", "in_use_"} {
		for _, amount := range (models.Resources{}).Amounts() {
			columns = append(columns, of+amount.Name)
		}
	}
	return downloaded(a, ctx, "weir-projects.csv", columns, projectCells, in.After,
		func(ctx context.Context, page store.Page) ([]projects.ProjectView, error) {
			return a.Projects.ListProjects(ctx, actorOf(ctx), *in, page)
		})
}

func projectCells(p projects.ProjectView) []string {
	ends := ""
	if p.EndsAt != nil {
		ends = p.EndsAt.UTC().Format(time.RFC3339)
	}
	cells := []string{strconv.FormatInt(p.ID, 10), p.Name, p.StartsAt.UTC().Format(time.RFC3339), ends, strconv.FormatInt(p.Members, 10),
		strconv.FormatInt(p.ActiveWorkspaces, 10)}
	for _, of := range []models.Resources{p.Quota, p.Allocated, p.InUse} {
		for _, amount := range of.Amounts() {
			cells = append(cells, amountCell(amount.Value))
		}
	}
	return cells
}

// amountCell is an amount in a table.
func amountCell(n int64) string {
	if models.IsUnlimited(n) {
		return models.UnlimitedWord
	}
	return strconv.FormatInt(n, 10)
}

func (a rest) createProject(ctx context.Context, in *Create[projects.ProjectInput]) (*Created[Project], error) {
	p, err := a.Projects.CreateProject(ctx, actorOf(ctx), in.Body)
	return created(p.Version, projectOf(projects.ProjectView{Project: p}, a.Store.Now()), err, "projects", p.ID)
}

func (a rest) getProject(ctx context.Context, in *ByID) (*Found[Project], error) {
	p, err := a.Projects.Project(ctx, actorOf(ctx), in.ID)
	return found(p.Version, projectOf(p, a.Store.Now()), err)
}

func (a rest) updateProject(ctx context.Context, in *Update[projects.ProjectInput]) (*Found[Project], error) {
	in.Body.Version = in.version
	if _, err := a.Projects.UpdateProject(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, err
	}
	return a.getProject(ctx, &in.ByID)
}
