package models

import (
	"time"

	"gorm.io/gorm"
)

// ProjectFilter chooses and orders projects; what is empty chooses all, by
// their ids.
type ProjectFilter struct {
	Search string    // in the name
	State  string    // ProjectsActive, ProjectsPlanned or ProjectsEnded at At
	At     time.Time // the moment that State is about
	Sort   string    // one of ProjectSorts
	Down   bool      // the largest first
}

// What a project's period of use is at a moment.
const (
	ProjectsActive  = "active"
	ProjectsPlanned = "planned"
	ProjectsEnded   = "ended"
)

// ProjectSorts are what projects can be ordered by: name, end of the period,
// GPU cores of the quota, promised, held now, quota less promised, and
// members.
var ProjectSorts = []string{"name", "ends", "quota", "promised", "held", "left", "members"}

// projectOrder is SQL for each of ProjectSorts.
var projectOrder = map[string]string{
	"":         "projects.id",
	"name":     "LOWER(projects.name)",
	"ends":     "COALESCE(projects.ends_at, '9999-12-31 00:00:00+00:00')",
	"quota":    "projects.quota_gpu_cores",
	"promised": "COALESCE(h.promised_gpu_cores, 0)",
	"held":     "COALESCE(w.cores, 0)",
	"left":     "projects.quota_gpu_cores - COALESCE(h.promised_gpu_cores, 0)",
	"members":  "COALESCE(h.members, 0)",
}

// ListProjects lists projects in scope as a filter says; page.After is the id
// of the last one before. Nothing comes after one that is not in scope, so
// that a place in the order tells nothing of it. What is promised comes from the present row of each
// project's history, what is held from the workspaces that hold something
// now: neither reads what is over.
func (q *Queries) ListProjects(scope Scope, f ProjectFilter, page Page) (list []Project, err error) {
	if !storable(f.Search) {
		return nil, nil
	}
	order := projectOrder[f.Sort]
	db := scope.projects(q.ordered(f.Sort), "projects.id").Select("projects.*")
	if f.Search != "" {
		db = db.Where(`LOWER(projects.name) LIKE ? ESCAPE '\'`, like(f.Search))
	}
	switch f.State {
	case ProjectsActive:
		db = db.Where("projects.starts_at <= ? AND (projects.ends_at IS NULL OR projects.ends_at > ?)", f.At, f.At)
	case ProjectsPlanned:
		db = db.Where("projects.starts_at > ?", f.At)
	case ProjectsEnded:
		db = db.Where("projects.ends_at <= ?", f.At)
	}
	direction, beyond := " ASC", ">"
	if f.Down {
		direction, beyond = " DESC", "<"
	}
	if page.After > 0 {
		db = db.Where("("+order+", projects.id) "+beyond+" (?)", scope.projects(q.ordered(f.Sort), "projects.id").Select(order+", projects.id").Where("projects.id = ?", page.After))
	}
	return list, db.Order(order + direction).Order("projects.id" + direction).Limit(page.limit()).Find(&list).Error
}

// ordered is projects with what one of ProjectSorts needs beside them.
func (q *Queries) ordered(sort string) *gorm.DB {
	db := q.db.Table("projects")
	switch sort {
	case "promised", "left", "members":
		db = db.Joins("LEFT JOIN project_history h ON h.project_id = projects.id AND h.until_at IS NULL")
	case "held":
		// The states are written out, so that the index of those that hold is used.
		db = db.Joins(`LEFT JOIN (SELECT project_id, SUM(gpus * cores) AS cores FROM workspaces
			WHERE state IN ('starting', 'running', 'stopping') GROUP BY project_id) w ON w.project_id = projects.id`)
	}
	return db
}
