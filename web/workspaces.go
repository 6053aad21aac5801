package web

import (
	"time"

	"weir/models"
)

// WorkspaceRow is a workspace in a list.
type WorkspaceRow struct {
	ID          int64
	Name        string
	State       models.WorkspaceState
	ProjectID   int64
	Project     string
	Environment string
	Owner       string // shown in a project's list
	Demand      models.Demand
	Devices     []Device // with its share; empty when it has none
	Reason      models.Text
	Progress    int64 // percent while starting
	Position    int   // in the queue, from 1; 0 when not queued
	Simulated   bool
	CanOpen     bool
	CanStop     bool
	Idleness    *Idleness // of a running workspace
	RequestedAt time.Time
	EndedAt     *time.Time
}

// WorkspacesView lists my workspaces.
type WorkspacesView struct {
	Rows  []WorkspaceRow
	State string // live, ended or all
	Next  string // address of the next page, empty on the last
}
