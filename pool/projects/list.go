package projects

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// ProjectQuery filters and sorts a list of projects.
type ProjectQuery struct {
	Search string `query:"q" maxLength:"100" doc:"part of the name"`
	State  string `query:"state" enum:"active,planned,ended" doc:"state of the period of use"`
	Sort   string `query:"sort" enum:"name,ends_at,quota,allocated,in_use,remaining,members" doc:"sort key; quota, allocated, in_use and remaining compare GPU cores; default by ID; a project whose value changes between two pages can be listed twice or not at all"`
	Order  string `query:"order" enum:"asc,desc" doc:"order of the sort; default ascending"`
}

// Orders of a sorted list.
const (
	orderAscending  = "asc"
	orderDescending = "desc"
)

// Descending reports whether the largest come first.
func (in ProjectQuery) Descending() bool { return in.Order == orderDescending }

// After is the page that follows p.
func (in ProjectQuery) After(p ProjectView) store.Page {
	page, n := store.Page{After: p.ID}, int64(0)
	switch in.Sort {
	case "":
		return page
	case "name":
		page.Key = p.Name
		return page
	case "ends_at":
		page.Key = cmp.Or(p.EndsAt, &store.OpenEnd).UTC().Format(time.RFC3339Nano)
		return page
	case "quota":
		n = p.Quota.GPUCores
	case "allocated":
		n = p.Allocated.GPUCores
	case "in_use":
		n = p.InUse.GPUCores
	case "remaining":
		n = p.Quota.GPUCores - p.Allocated.GPUCores
	case "members":
		n = p.Members
	}
	page.Key = strconv.FormatInt(n, 10)
	return page
}

func (in *ProjectQuery) normalize() error {
	var p models.Problems
	if in.Sort != "" && !slices.Contains(store.ProjectSorts, in.Sort) {
		p.Add("sort", "must be name, ends_at, quota, allocated, in_use, remaining or members")
	}
	if !slices.Contains([]string{"", orderAscending, orderDescending}, in.Order) {
		p.Add("order", "must be asc or desc")
	}
	if in.State != "" && !slices.Contains([]string{models.ProjectsActive, models.ProjectsPlanned, models.ProjectsEnded}, in.State) {
		p.Add("state", "must be active, planned or ended")
	}
	in.Search = models.CheckText("q", in.Search, 100, &p)
	return p.Err()
}

// ListProjects lists the projects in the actor's scope.
func (s *Service) ListProjects(ctx context.Context, actor policies.Actor, in ProjectQuery, page store.Page) ([]ProjectView, error) {
	if !actor.SignedIn() {
		return nil, s.access.Check(actor, policies.Platform, policies.ProjectRead)
	}
	if err := in.normalize(); err != nil {
		return nil, err
	}
	var views []ProjectView
	err := s.store.Snapshot(ctx, func(q *store.Queries) error {
		f := store.ProjectFilter{Search: in.Search, State: in.State, At: q.Now(), Sort: in.Sort, Down: in.Descending()}
		projects, err := q.ListProjects(actor.Scope(), f, page)
		if err != nil || len(projects) == 0 {
			return err
		}
		views, err = viewsOf(q, projects...)
		return err
	})
	return views, err
}

// RolesIn returns the names of the actor's roles, by project.
func (s *Service) RolesIn(ctx context.Context, actor policies.Actor) (map[int64]string, error) {
	memberships, err := s.store.Read(ctx).MembershipsOf(actor.User.ID, s.store.Now())
	names := make(map[int64]string, len(memberships))
	for _, m := range memberships {
		names[m.ProjectID] = m.RoleName
	}
	return names, err
}

// ProjectNames lists the ids and names of projects in the actor's scope: the first
// page, and the chosen ones that are not on it. more reports whether there are
// others.
func (s *Service) ProjectNames(ctx context.Context, actor policies.Actor, chosen []int64) (list []models.Project, more bool, err error) {
	if !actor.SignedIn() {
		return nil, false, s.access.Check(actor, policies.Platform, policies.ProjectRead)
	}
	q := s.store.Read(ctx)
	list, err = q.ProjectNames(actor.Scope(), store.Page{Limit: store.PageSize})
	if err != nil || len(list) < store.PageSize {
		return list, false, err
	}
	last := list[len(list)-1].ID
	var beyond []int64
	for _, id := range chosen {
		if id > last {
			beyond = append(beyond, id)
		}
	}
	if len(beyond) == 0 {
		return list, true, nil
	}
	others, err := q.ProjectsOf(actor.Scope(), beyond)
	return append(list, others...), true, err
}
