package web

import (
	"testing"

	"weir/models"
)

// What waits for its start leaves the queue; only what runs is stopped.
func TestStopDialog(t *testing.T) {
	row := func(state models.WorkspaceState) WorkspaceRow { return WorkspaceRow{Name: "train", State: state} }
	for name, c := range map[string]struct {
		rows          []WorkspaceRow
		title, button string
	}{
		"queued":       {[]WorkspaceRow{row(models.StateQueued)}, "Remove train from the queue?", "Leave queue"},
		"running":      {[]WorkspaceRow{row(models.StateRunning)}, "Stop train?", "Stop workspace"},
		"both":         {[]WorkspaceRow{row(models.StateRunning), row(models.StateQueued)}, "Stop 2 workspaces?", "Stop workspaces"},
		"several wait": {[]WorkspaceRow{row(models.StateQueued), row(models.StateRequested)}, "Stop 2 workspaces?", "Leave queue"},
	} {
		v := StopWorkspacesView{Rows: c.rows}
		if title, button := v.title().String(), v.button(t.Context()); title != c.title || button != c.button {
			t.Errorf("%s: %q, %q", name, title, button)
		}
	}
}
