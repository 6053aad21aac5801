package web

import (
	"slices"
	"time"

	"weir/models"
)

// HomeView shows the reader's workspaces and projects.
type HomeView struct {
	Workspaces     []WorkspaceRow // mine, live
	Projects       []ProjectCard
	Extensions     []models.Extension // of ends that are near
	OthersProjects bool               // there are projects, though the reader is in none
}

// canLaunch reports whether the reader can launch workspaces in one of the projects.
func (v HomeView) canLaunch() bool {
	return slices.ContainsFunc(v.Projects, func(p ProjectCard) bool { return p.CanLaunch })
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
