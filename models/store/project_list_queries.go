package store

import (
	"strconv"
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// ProjectFilter selects and sorts projects; the zero filter matches all, by id.
type ProjectFilter struct {
	Search string    // in the name
	State  string    // ProjectsActive, ProjectsPlanned or ProjectsEnded at At
	At     time.Time // the time that State refers to
	Sort   string    // one of ProjectSorts
	Down   bool      // descending
}

// ProjectSorts are the sort keys of projects: name, end of the period, and, in
// GPU cores, quota, allocated, in use, and quota less allocated; members.
var ProjectSorts = []string{"name", "ends_at", "quota", "allocated", "in_use", "remaining", "members"}

// projectOrder is SQL for each of ProjectSorts.
var projectOrder = map[string]string{
	"":          "projects.id",
	"name":      "LOWER(projects.name)",
	"ends_at":   "COALESCE(projects.ends_at, '9999-12-31 00:00:00+00:00')",
	"quota":     "projects.quota_gpu_cores",
	"allocated": "COALESCE(h.allocated_gpu_cores, 0)",
	"in_use":    "COALESCE(h.cores, 0)",
	"remaining": "projects.quota_gpu_cores - COALESCE(h.allocated_gpu_cores, 0)",
	"members":   "COALESCE(h.members, 0)",
}

// OpenEnd is the end by which projects without one are sorted; projectOrder has the same.
var OpenEnd = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// after is SQL for the sort key of the project before the page, and its argument.
func (f ProjectFilter) after(key string) (sql string, arg any, err error) {
	sql = "?"
	switch f.Sort {
	case "name":
		if sql, arg = "LOWER(?)", key; key == "" || !storable(key) {
			err = strconv.ErrSyntax
		}
	case "ends_at":
		arg, err = time.Parse(time.RFC3339Nano, key)
	default:
		arg, err = strconv.ParseInt(key, 10, 64)
	}
	if err != nil {
		err = models.Invalid("cursor", "is not a valid cursor for this list")
	}
	return sql, arg, err
}

// ListProjects lists the projects in scope that match a filter, after the one of the page,
// which stands where page.Key says, wherever it has gone since. Allocations come from
// the present row of each project's history and usage from active workspaces:
// rows of the past are not read.
func (q *Queries) ListProjects(scope Scope, f ProjectFilter, page Page) (list []models.Project, err error) {
	if !storable(f.Search) {
		return nil, nil
	}
	order := projectOrder[f.Sort]
	db := scope.projects(q.sortable(f.Sort), "projects.id").Select("projects.*")
	if f.Search != "" {
		db = db.Where(`LOWER(projects.name) LIKE ? ESCAPE '\'`, like(f.Search))
	}
	switch f.State {
	case models.ProjectsActive:
		db = db.Where("projects.starts_at <= ? AND (projects.ends_at IS NULL OR projects.ends_at > ?)", f.At, f.At)
	case models.ProjectsPlanned:
		db = db.Where("projects.starts_at > ?", f.At)
	case models.ProjectsEnded:
		db = db.Where("projects.ends_at <= ?", f.At)
	}
	direction, beyond := " ASC", ">"
	if f.Down {
		direction, beyond = " DESC", "<"
	}
	if page.After > 0 && f.Sort == "" {
		db = db.Where("projects.id "+beyond+" ?", page.After)
	} else if page.After > 0 {
		sql, key, err := f.after(page.Key)
		if err != nil {
			return nil, err
		}
		db = db.Where("("+order+", projects.id) "+beyond+" ("+sql+", ?)", key, page.After)
	}
	return list, db.Order(order + direction).Order("projects.id" + direction).Limit(page.limit()).Find(&list).Error
}

// sortable joins projects with the columns that one of ProjectSorts needs.
func (q *Queries) sortable(sort string) *gorm.DB {
	db := q.db.Table("projects")
	switch sort {
	case "allocated", "remaining", "members":
		db = db.Joins("LEFT JOIN project_history h ON h.project_id = projects.id AND h.until_at IS NULL")
	case "in_use":
		// The phases are literals, so that the partial index is used.
		db = db.Joins(`LEFT JOIN (SELECT project_id, SUM(gpus * cores) AS cores FROM holders
			WHERE phase IN ('in_use', 'ending') GROUP BY project_id) h ON h.project_id = projects.id`)
	}
	return db
}
