package web

import (
	"time"

	"weir/models"
)

// HomeView shows the reader's workspaces and projects.
type HomeView struct {
	Workspaces     []WorkspaceRow // mine, live
	Projects       []ProjectCard
	CanLaunch      bool
	Extensions     []models.Extension // of ends that are near
	OthersProjects bool               // there are projects, though the reader is in none
}

// ProjectCard is one of the reader's projects with use and limit.
type ProjectCard struct {
	ID        int64
	Name      string
	Role      string
	Meters    []Meter        // LimitMeters
	Until     *time.Time     // my end of the membership
	EndsAt    *time.Time     // of the project
	Available []AvailableRow // available sizes, the smallest first
	Active    bool           // project and membership cover now
	CanLaunch bool
}
