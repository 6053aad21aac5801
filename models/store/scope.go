package store

import (
	"time"

	"gorm.io/gorm"
)

// Scope restricts a query to projects: all of them, or Projects, or those of which the
// user is an active member at the time At. The zero Scope matches nothing.
type Scope struct {
	All      bool
	Projects []int64
	UserID   int64
	At       time.Time
}

// AllProjects is the scope of platform administrators and background work.
var AllProjects = Scope{All: true}

// projects restricts db to rows whose column names a project in scope.
func (s Scope) projects(db *gorm.DB, column string) *gorm.DB {
	if s.All {
		return db
	}
	if s.UserID == 0 {
		return db.Where(column+" IN ?", s.Projects)
	}
	return db.Where(column+` IN (SELECT m.project_id FROM members m
		WHERE m.user_id = ? AND m.removed_at IS NULL AND (m.until IS NULL OR m.until > ?))`, s.UserID, s.At)
}
