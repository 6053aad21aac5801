package web

import (
	"context"
	"strings"

	"weir/models"
)

// RunRow is a run, and what the reader may do with it.
type RunRow struct {
	models.RunView
	Position  int // in the queue, from 1
	CanStop   bool
	CanRead   bool // its output
	CanDelete bool
}

// RunsView lists runs, of one project unless Project is 0.
type RunsView struct {
	Rows    []RunRow
	State   string // live, ended, all
	Project int64
	Next    string
}

// address is that of the list in a state.
func (v RunsView) address(state string) string {
	if v.Project == 0 {
		return "/runs?state=" + state
	}
	return "/runs?project_id=" + number(v.Project) + "&state=" + state
}

// RunDetail is a run with its share and the end of its output.
type RunDetail struct {
	RunRow
	Devices   []Device // with its share
	Simulated bool
	Starts    models.Text // when it can probably start, of a queued run
	Output    string
	Cut       bool // there is earlier output
}

func runPath(id int64) string { return "/runs/" + number(id) }

// commandLine is the command as a shell takes it.
func (r RunRow) commandLine() string {
	words := make([]string, len(r.Command))
	for i, w := range r.Command {
		if words[i] = w; w == "" || strings.ContainsAny(w, " \t\n'\"\\$`&|;<>()*?[]{}~#!") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// result is the state of a run, with its exit code.
func (r RunRow) result(ctx context.Context) string {
	if r.ExitCode != nil {
		return T(ctx, "ended with exit code %d", *r.ExitCode)
	}
	return TT(ctx, r.State.Words())
}

// ok reports whether a run runs or has ended well.
func (r RunRow) ok() bool {
	return r.State == models.RunRunning || r.ExitCode != nil && *r.ExitCode == 0
}

// ConfirmDeleteRun asks for confirmation before a run is deleted.
func ConfirmDeleteRun(r RunRow) ConfirmView {
	return ConfirmView{Title: models.Say("Delete this run?"), Button: models.Say("Delete run"),
		Consequences: []models.Text{models.Say("Its output is deleted. Files that it has written are kept.")},
		Action:       runPath(r.ID) + "/delete", Back: runPath(r.ID)}
}
