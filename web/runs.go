package web

import (
	"context"
	"strings"
	"time"

	"weir/models"
)

// RunRow is a run, and what the reader may do with it.
type RunRow struct {
	models.RunView
	Position  int // in the queue, from 1
	CanStop   bool
	CanRead   bool // its output
	CanDelete bool

	IdleEndsAt *time.Time // when it is ended unless its program works before; nil: never
}

// RunsView lists runs, of one project unless Project is 0.
type RunsView struct {
	Rows     []RunRow
	State    string // live, ended, all
	Project  int64
	CanStart bool // in the project, if there is one
	Next     string
}

// startPath is the address of the form that starts a run.
func (v RunsView) startPath() string {
	if v.Project == 0 {
		return "/runs/new"
	}
	return "/runs/new?project_id=" + number(v.Project)
}

// RunForm is the form of a run with its preview. Its fields: workspace_id, project_id,
// command, directory, gpus, cores, gpu_memory_mib, gpu_model, cpu_milli, memory_mib, env,
// reservation_id, time_limit_minutes and when_insufficient (fewer or wait).
type RunForm struct {
	LaunchView
	Workspaces   []Option // the reader's own
	Reservations []Option // the reader's own in the project that are active
	Environment  string   // in which it would run; empty: none matches
}

// workspaceOptions are the workspaces to choose from, or none.
func (v RunForm) workspaceOptions(ctx context.Context) []Option {
	return append([]Option{{Label: T(ctx, "none")}}, v.Workspaces...)
}

// ReservationOption is a reservation to choose.
func ReservationOption(ctx context.Context, r ReservationRow) Option {
	return Option{Value: number(r.ID), Label: "№ " + number(r.ID) + " · " + r.ProjectName + " · " + r.demand(ctx)}
}

// reservationOptions are the reservations to choose from, or none.
func (v RunForm) reservationOptions(ctx context.Context) []Option {
	return append([]Option{{Label: T(ctx, "none")}}, v.Reservations...)
}

// ofWorkspace reports whether a workspace is chosen.
func (v RunForm) ofWorkspace() bool { return v.Form.Value("workspace_id") != "" }

// headline is what would come of the run in one sentence.
func (v RunForm) headline(ctx context.Context) string {
	if v.Decision.Outcome == models.OutcomeRefused && !v.Decision.needsChoice() {
		return T(ctx, "Cannot start this run")
	}
	return v.Decision.headline(ctx)
}

// runLabels are the inputs of the form of a run that are called otherwise than elsewhere.
var runLabels = map[string]string{"gpu_memory_mib": "launch.gpu_memory_mib", "command": "run_command", "directory": "run_directory",
	"cpu_milli": "launch.cpu_milli", "memory_mib": "launch.memory_mib", "time_limit_seconds": "time_limit_minutes"}

var runName = field{Label: models.Say("Name"), Hint: models.Say("Default: as the program.")}

// address is that of the list in a state.
func (v RunsView) address() string {
	if v.Project == 0 {
		return "/runs?state="
	}
	return "/runs?project_id=" + number(v.Project) + "&state="
}

// RunDetail is a run with its share and the end of its output.
type RunDetail struct {
	RunRow
	Events      []models.RunEvent
	Reservation *models.ReservationGrant // that ends it; nil: none
	Devices     []Device                 // with its share
	Simulated   bool
	Starts      Start // of a queued run
	Output      string
	Cut         bool                 // there is earlier output
	Graph       models.GraphProgress // that the run executes; without branches: none
}

// topics are the run and, until it has ended, its output.
func (r RunDetail) topics() []string {
	topics := []string{"run:" + number(r.ID)}
	if r.CanRead && r.EndedAt == nil {
		topics = append(topics, "run-output:"+number(r.ID))
	}
	return topics
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

// cpuTime is the CPU time of a run that has ended, and how much of its CPU that is; empty if it is not known.
func (r RunRow) cpuTime(ctx context.Context) string {
	if r.CPUTimeMs == nil || r.StartedAt == nil || r.EndedAt == nil {
		return ""
	}
	used := time.Duration(*r.CPUTimeMs) * time.Millisecond
	words := T(ctx, "%.1f s", used.Seconds())
	if used >= time.Minute {
		words = span(ctx, time.Time{}, time.Time{}.Add(used))
	}
	average := *r.CPUTimeMs * 1000 / max(r.EndedAt.Sub(*r.StartedAt).Milliseconds(), 1)
	return T(ctx, "CPU time: %s; on average, %s of %s CPU.", words, models.Quantity("cpu_milli", min(average, r.Demand.CPUMilli)),
		models.Quantity("cpu_milli", r.Demand.CPUMilli))
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

// ConfirmStopRun asks for confirmation before a run is stopped.
func ConfirmStopRun(r RunRow) ConfirmView {
	v := ConfirmView{Title: models.Say("Stop run %s?", r.Name), Button: models.Say("Stop run"), Action: runPath(r.ID) + "/stop",
		Back: runPath(r.ID), Consequences: []models.Text{stopEndsPrograms}}
	if r.State == models.RunQueued {
		v.Consequences = []models.Text{leavesQueue}
	}
	return v
}
