package pool

import (
	"context"
	"slices"

	"weir/models"
	"weir/policies"
)

// ProjectQuery chooses and orders the projects of the console.
type ProjectQuery struct {
	Search string `query:"search" maxLength:"100" doc:"part of the name"`
	State  string `query:"state" enum:"active,planned,ended" doc:"what the period of use is now"`
	Sort   string `query:"sort" enum:"name,ends,quota,promised,held,left,members" doc:"order by the name, the period's end, or GPU cores of the quota, promised to members, held now, left of the quota; absent: by id"`
	Down   bool   `query:"down" doc:"the last or largest first"`
}

func (in *ProjectQuery) check() error {
	var p models.Problems
	if in.Sort != "" && !slices.Contains(models.ProjectSorts, in.Sort) {
		p.Add("sort", "must be one of name, ends, quota, promised, held, left and members")
	}
	if in.State != "" && !slices.Contains([]string{models.ProjectsActive, models.ProjectsPlanned, models.ProjectsEnded}, in.State) {
		p.Add("state", "must be active, planned or ended")
	}
	in.Search = models.CheckText("search", in.Search, 100, &p)
	return p.Err()
}

// ListProjects lists the projects that the actor may see as in says.
func (l *Ledger) ListProjects(ctx context.Context, actor policies.Actor, in ProjectQuery, page models.Page) ([]ProjectView, error) {
	if !actor.Signed() {
		return nil, l.access.Check(actor, policies.Platform, "project", "read")
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	var views []ProjectView
	err := l.store.Snapshot(ctx, func(q *models.Queries) error {
		f := models.ProjectFilter{Search: in.Search, State: in.State, At: q.Now(), Sort: in.Sort, Down: in.Down}
		projects, err := q.ListProjects(actor.Scope(), f, page)
		if err != nil || len(projects) == 0 {
			return err
		}
		views, err = withSums(q, projects)
		return err
	})
	return views, err
}

// RolesIn names the actor's role in each project that they are in.
func (l *Ledger) RolesIn(ctx context.Context, actor policies.Actor) (map[int64]string, error) {
	memberships, err := l.store.Read(ctx).MembershipsOf(actor.User.ID, l.store.Now())
	names := make(map[int64]string, len(memberships))
	for _, m := range memberships {
		names[m.ProjectID] = m.RoleName
	}
	return names, err
}
