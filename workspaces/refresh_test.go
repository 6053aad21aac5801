package workspaces_test

import (
	"errors"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/storage/rules"
)

// A change of the rules reaches a running workspace, once, and its history says so. If
// the runtime fails, the workspace stays outdated.
func TestRulesReachRunningWorkspaces(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := b.until(t, b.launch(t, "a", gpu(0, 0)).ID, models.StateRunning)
		started := w.Mounts
		refresh := func(want error) (models.Workspace, []models.WorkspaceEvent) {
			t.Helper()
			if err := b.RefreshAll(b.ctx); !errors.Is(err, want) {
				t.Fatalf("%v, want %v", err, want)
			}
			events, err := b.store.Read(b.ctx).WorkspaceEvents(w.ID)
			if err != nil {
				t.Fatal(err)
			}
			return b.row(t, w.ID), events
		}
		before, history := refresh(nil)
		if before.Mounts != started || before.Version != w.Version {
			t.Error("without a change, the workspace has changed")
		}
		dir := rules.ProjectDir(b.project.ID) + "/project_model"
		storetest.InTx(t, b.store, func(q *store.Queries) error {
			return q.PutFileRule(&models.FileRule{ProjectID: b.project.ID, Path: models.FilePath(dir), Subject: models.SubjectProject, Access: models.AccessRead, Download: models.DownloadInherit, ChangedAt: q.Now()})
		})
		b.runtime.fixed = errors.New("no namespace")
		if got, _ := refresh(b.runtime.fixed); got.Mounts != started {
			t.Error("the workspace counts as refreshed")
		}
		b.runtime.fixed = nil
		got, events := refresh(nil)
		if got.Mounts == started || got.Mounts != models.MountsDigest(b.runtime.mounts) {
			t.Error("the mounts are not recorded")
		}
		if len(events) != len(history)+1 || !strings.Contains(events[len(events)-1].Message.String(), "mounted anew") {
			t.Errorf("history: %+v", events)
		}
		for _, m := range b.runtime.mounts {
			if m.Target == dir && !m.ReadOnly {
				t.Errorf("%s can be written", dir)
			}
		}
		if again, _ := refresh(nil); again.Version != got.Version {
			t.Error("it is refreshed again")
		}
	})
}

// Access that was withdrawn does not stay for as long as the mounts cannot be changed: one failure may
// pass, after the second one in a row the workspace is stopped.
func TestWithdrawnWhereMountsCannotChange(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := b.until(t, b.launch(t, "a", models.LaunchParameters{}).ID, models.StateRunning)
		b.runtime.fixed = errors.New("no space")
		state := func() models.WorkspaceState {
			t.Helper()
			if err := b.RefreshAll(b.ctx); !errors.Is(err, b.runtime.fixed) {
				t.Fatal(err)
			}
			return b.row(t, w.ID).State
		}
		for range 3 {
			if got := state(); got != models.StateRunning {
				t.Fatalf("nothing was withdrawn, and it is %s", got)
			}
		}
		b.runtime.fixed = nil
		if err := b.RefreshAll(b.ctx); err != nil {
			t.Fatal(err)
		}
		dir := rules.ProjectDir(b.project.ID) + "/project_model"
		storetest.InTx(t, b.store, func(q *store.Queries) error {
			return q.PutFileRule(&models.FileRule{ProjectID: b.project.ID, Path: models.FilePath(dir), Subject: models.SubjectProject, Access: models.AccessRead, Download: models.DownloadInherit, ChangedAt: q.Now()})
		})
		b.runtime.fixed = errors.New("no space")
		if got := state(); got != models.StateRunning {
			t.Errorf("after one failure it is %s", got)
		}
		if got := state(); got != models.StateStopping {
			t.Errorf("after two it is %s", got)
		}
	})
}
