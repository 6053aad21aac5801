package web

import (
	"time"

	"weir/models"
)

// HomeView answers "what is running and what may I use".
type HomeView struct {
	Workspaces       []WorkspaceRow // mine, live
	Projects         []ProjectCard
	CanLaunch        bool
	CanCreateProject bool
	Extensions       []models.Extension // of ends that are near
	OthersProjects   bool               // there are projects, though the reader is in none
}

// ProjectCard is one of my projects with what I have in use, and my limit.
type ProjectCard struct {
	ID        int64
	Name      string
	Role      string
	Meters    []Meter        // LimitMeters
	Until     *time.Time     // my participation deadline
	EndsAt    *time.Time     // of the project
	Fits      []AvailableRow // what could be had now, the smallest first
	Active    bool           // project and membership cover now
	CanLaunch bool
}
