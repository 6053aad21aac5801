package web

import (
	"cmp"
	"context"
	"net/url"
	"slices"
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
	OwnerID     int64
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
	Rows         []WorkspaceRow
	State        string   // one of WorkspaceStates
	Everybody    bool     // also those of others
	Form         Form     // the filter of everybody's: state and WorkspaceFilters
	Projects     []Choice // of the filter
	MoreProjects bool     // there are others
	Next         string   // address of the next page, empty on the last
}

// WorkspaceFilters are the fields of the filter of everybody's list beside the state.
var WorkspaceFilters = []string{"q", "project_id", "provider_id", "idle_hours"}

// WorkspaceStates are the states by which workspaces are listed; of everybody's also single ones.
func WorkspaceStates(everybody bool) []string {
	if everybody {
		return []string{"active", "queued", "starting", "running", "stopping", "ended", "all"}
	}
	return []string{"active", "ended", "all"}
}

// address is the address of the list in a state, of the reader or of everybody.
func (v WorkspacesView) address(state string, everybody bool) string {
	q := url.Values{"state": {state}}
	if everybody {
		q.Set("owner", "all")
		for _, name := range WorkspaceFilters {
			if text := v.Form.Value(name); text != "" {
				q.Set(name, text)
			}
		}
	}
	return "/workspaces?" + q.Encode()
}

// stoppable reports whether the reader may stop one of them.
func (v WorkspacesView) stoppable() bool {
	return slices.ContainsFunc(v.Rows, func(w WorkspaceRow) bool { return w.CanStop })
}

// nothing is what is said instead of an empty list.
func (v WorkspacesView) nothing(ctx context.Context) string {
	if v.filtered() {
		return T(ctx, "No matching workspaces.")
	}
	return T(ctx, "No workspaces.")
}

// filtered reports whether everybody's list is filtered.
func (v WorkspacesView) filtered() bool {
	given := func(name string) bool { return v.Form.Value(name) != "" }
	return v.Everybody && (v.State != "active" || slices.ContainsFunc(WorkspaceFilters, given))
}

// stateOptions are the states of the filter.
func stateOptions(ctx context.Context) (list []Option) {
	words := map[string]string{"active": T(ctx, "active"), "ended": T(ctx, "ended"), "all": T(ctx, "all")}
	for _, state := range WorkspaceStates(true) {
		list = append(list, Option{state, cmp.Or(words[state], stateWord(ctx, state))})
	}
	return list
}

// projectOptions are the projects of the filter.
func (v WorkspacesView) projectOptions(ctx context.Context) []Option {
	list := []Option{{"", T(ctx, "any")}}
	for _, p := range v.Projects {
		list = append(list, Option{number(p.ID), p.Label})
	}
	return list
}

// projectField is the filter by project. Those that are not in the list are found by their name.
func (v WorkspacesView) projectField() field {
	f := field{Label: models.Say("Project")}
	if v.MoreProjects {
		f.Hint = models.Say("Search for others by name.")
	}
	return f
}

// idleOptions are the choices of the filter.
func idleOptions(ctx context.Context) []Option {
	list := []Option{{"", T(ctx, "any")}}
	for _, hours := range []int64{1, 8, 24, 72, 168} {
		list = append(list, Option{number(hours), T(ctx, "idle for %s", minutesValue(ctx, hours*60))})
	}
	return list
}

// StopWorkspacesView asks whether to stop workspaces.
type StopWorkspacesView struct {
	Rows    []WorkspaceRow
	Kernels map[int64]Kernels // by workspace
	Form    Form
}

// Kernels are how many kernels of a workspace run, and how many of them compute.
type Kernels struct{ Running, Busy int64 }

// title names one workspace, or counts them.
func (v StopWorkspacesView) title() models.Text {
	switch len(v.Rows) {
	case 0:
		return models.Say("Stop workspaces")
	case 1:
		if v.waiting() {
			return models.Say("Remove %s from the queue?", v.Rows[0].Name)
		}
		return models.Say("Stop %s?", v.Rows[0].Name)
	}
	return models.Say("Stop %d workspaces?", len(v.Rows))
}

// waiting reports whether all of them are in the queue.
func (v StopWorkspacesView) waiting() bool {
	return !slices.ContainsFunc(v.Rows, func(w WorkspaceRow) bool { return !waits(w.State) })
}

// waits reports whether a workspace only waits for its share.
func waits(state models.WorkspaceState) bool {
	return state == models.StateQueued || state == models.StateRequested
}

// stopLabel is what stopping a workspace is called.
func stopLabel(ctx context.Context, state models.WorkspaceState) string {
	if waits(state) {
		return T(ctx, "Leave queue")
	}
	return T(ctx, "Stop")
}

// What is lost when something stops, or no longer waits.
var (
	stopEndsPrograms = models.Say("Running programs end, and what is only in their memory is lost. Files are kept.")
	leavesQueue      = models.Say("The place in the queue is given up.")
)

// ofOthers reports whether somebody else owns one of them.
func (v StopWorkspacesView) ofOthers(ctx context.Context) bool {
	return slices.ContainsFunc(v.Rows, func(w WorkspaceRow) bool { return From(ctx).User == nil || w.OwnerID != From(ctx).User.ID })
}

// button is what the confirmation does.
func (v StopWorkspacesView) button(ctx context.Context) string {
	switch {
	case v.waiting():
		return T(ctx, "Leave queue")
	case len(v.Rows) == 1:
		return T(ctx, "Stop workspace")
	}
	return T(ctx, "Stop workspaces")
}

// Fields of the list and of the confirmation.
var (
	workspaceSearch = field{Label: models.Say("Workspace, person, project or machine"), Type: "search"}
	workspaceState  = field{Label: models.Say("State")}
	workspaceIdle   = field{Label: models.Say("Idle")}
	stopReason      = field{Label: models.Say("Reason"), Hint: models.Say("The owners are told.")}
)

func stopWorkspacePath(id int64) string { return "/workspaces/stop?id=" + number(id) }
