package web

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/a-h/templ"

	"weir/models"
)

// WorkspaceView is one workspace.
type WorkspaceView struct {
	Workspace     models.WorkspaceView
	Position      int      // in the queue, from 1
	Devices       []Device // with its share
	Events        []models.WorkspaceEvent
	Directories   []Directory
	Outdated      bool // it was started with other directories
	Simulated     bool
	CanOpen       bool
	OtherApps     []models.App // to which its start page does not belong
	CanStop       bool
	CanRun        bool // commands in its environment
	CanReadLog    bool
	CanRestart    bool
	Runs          []RunRow                    // in its environment that have not ended
	ScheduledStop *ScheduledStop              // when and why it stops; nil if it has no end
	Idleness      *Idleness                   // of a running workspace
	Telemetry     []models.WorkspaceTelemetry // of the last hour, oldest first
	Now           time.Time
	LaunchAgain   string // address of a launch with the same values, or empty
}

// Directory is a shared directory as the workspace sees it.
type Directory struct {
	Path     string
	Purpose  models.Text
	Writable bool
	Note     models.Text // such as why a rule of a file is not in force on the mount
}

var limitNames = map[string]models.Text{
	"cpu":     models.Say("CPU"),
	"memory":  models.Say("Memory"),
	"gpu":     models.Say("GPU"),
	"network": models.Say("Network"),
	"pids":    models.Say("Processes"),
	"storage": models.Say("Storage"),
	"user":    models.Say("User of the system"),
}

// openPath is the address that opens the first page of an app.
func openPath(workspace int64, app models.App) templ.SafeURL {
	return templ.SafeURL(workspacePath(workspace) + "/open?path=" + url.QueryEscape(app.Path))
}

// limitName is the name of the resource of a limit.
func limitName(ctx context.Context, resource string) string {
	if t, ok := limitNames[resource]; ok {
		return TT(ctx, t)
	}
	return fieldName(ctx, resource)
}

// WorkspaceLogView is the log of a workspace.
type WorkspaceLogView struct {
	ID        int64
	Name, Log string
	Live      bool // it can still print
}

// logSeconds is how often the log of a workspace is read for a page that shows it.
const logSeconds = 3

// frame is that of a page which follows what is printed. The server is not told of it.
func (v WorkspaceLogView) frame(ctx context.Context) frame {
	f := frame{Title: T(ctx, "Log of %s", v.Name)}
	if v.Live {
		f.Topics, f.Every = []string{"workspace:" + number(v.ID)}, logSeconds
	}
	return f
}

// ConfirmRestart asks for confirmation before programs end.
func ConfirmRestart(w models.Workspace, k Kernels) ConfirmView {
	lost := []models.Text{models.Say("Running programs end, and what is only in their memory is lost. Files are kept."),
		models.Say("It keeps its resources and starts again with the same parameters, in the present version of its environment.")}
	if k.Running > 0 {
		lost = slices.Insert(lost, 0, models.Say("%d kernels are running; %d busy.", k.Running, k.Busy))
	}
	return ConfirmView{
		Title:        models.Say("Restart %s?", w.Name),
		Consequences: lost,
		Button:       models.Say("Restart"),
		Action:       workspacePath(w.ID) + "/restart",
		Back:         workspacePath(w.ID),
	}
}
