package store

import (
	"gorm.io/gorm"

	"weir/models"
)

// Visible is which of the rows that belong to users a user may see.
type Visible struct {
	Owner          int64   // those of this user in any case
	HiddenProjects []int64 // those of others not in these projects
}

// OwnedFilter selects rows with a project, a user and a state; a zero field matches all.
type OwnedFilter[S ~string] struct {
	ProjectID int64
	UserID    int64
	States    []S
	Visible
}

// Filters of lists.
type (
	DeploymentFilter  = OwnedFilter[models.DeploymentState]
	ReservationFilter = OwnedFilter[models.ReservationState]
)

// RunFilter selects runs, also those of one workspace.
type RunFilter struct {
	OwnedFilter[models.RunState]
	WorkspaceID int64
}

// ownedViews selects rows of a table with their claims and names.
func (q *Queries) ownedViews(scope Scope, table string) *gorm.DB {
	return scope.projects(withClaims(q.db, table), table+".project_id").
		Select(table + ".*, projects.name AS project_name, users.name AS user_name, environments.name AS environment_name").
		Joins("JOIN projects ON projects.id = " + table + ".project_id").
		Joins("JOIN users ON users.id = " + table + ".user_id").
		Joins("JOIN environments ON environments.id = " + table + ".environment_id")
}

// newest applies the filter and the page to rows of a table, newest first.
func (f OwnedFilter[S]) newest(db *gorm.DB, table string, page Page) *gorm.DB {
	db = page.newest(db, table+".id")
	if f.ProjectID != 0 {
		db = db.Where(table+".project_id = ?", f.ProjectID)
	}
	if f.UserID != 0 {
		db = db.Where(table+".user_id = ?", f.UserID)
	}
	if len(f.States) > 0 {
		db = db.Where(table+".state IN ?", f.States)
	}
	if len(f.HiddenProjects) > 0 {
		db = db.Where("("+table+".user_id = ? OR "+table+".project_id NOT IN ?)", f.Owner, f.HiddenProjects)
	}
	return db
}
