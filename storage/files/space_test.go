package files

import (
	"context"
	"os"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// works adds a workspace of the member that runs.
func (w *world) works(t *testing.T) {
	t.Helper()
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		e := models.Environment{Name: "notebook", Language: "python", LanguageVersion: "3.11", Version: 1, CreatedAt: q.Now()}
		if err := q.CreateEnvironment(&e); err != nil {
			return err
		}
		return q.CreateWorkspace(&models.Workspace{ProjectID: w.project, MemberID: w.member, UserID: w.acting.User.ID, EnvironmentID: e.ID, Name: "writes",
			State: models.StateRunning, Version: 1, RequestedAt: q.Now()}, models.Text{})
	})
}

// What a notebook writes past a limit is found when the disk fills, and has a grace period until
// the disk is nearly full.
func TestFillingDisk(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		const size = 100 << 30
		free, most := int64(size), int64(0)
		w.space = func() (int64, int64, error) { return free, size, nil }
		w.limit(t, 1)
		writes := func(bytes int64) (used int64, until *time.Time) {
			t.Helper()
			free -= bytes
			if err := w.lookAtSpace(t.Context(), &most); err != nil {
				t.Fatal(err)
			}
			use, _, err := w.store.Read(t.Context()).MemberStorageUse(w.member)
			if err != nil {
				t.Fatal(err)
			}
			return use.Used, use.ReadOnlyAt
		}
		writes(0)
		if err := os.WriteFile(w.disk(w.own("notebook")), make([]byte, 2*mebibyte), 0o644); err != nil {
			t.Fatal(err)
		}
		if used, _ := writes(spaceStep); used != 0 {
			t.Errorf("without work in the project, %d were measured", used)
		}
		w.works(t)
		if used, _ := writes(spaceStep - 1); used != 0 {
			t.Errorf("of little less space, %d were measured", used)
		}
		used, until := writes(1)
		if used != 2*mebibyte || until == nil || !until.Equal(w.store.Now().Add(w.Grace)) || w.directoryUser(t).Exceeded {
			t.Errorf("%d used, read-only from %v on", used, until)
		}
		w.clock.Advance(time.Hour)
		if _, until = writes(size - size/scarcePart); until == nil || !until.Equal(w.store.Now()) || !w.directoryUser(t).Exceeded {
			t.Errorf("on a disk that is nearly full, read-only from %v on", until)
		}
		free = size // somebody has deleted files: what is exceeded still is
		if err := w.Sweep(t.Context()); err != nil || !w.directoryUser(t).Exceeded {
			t.Errorf("the excess is forgotten: %v", err)
		}
		if err := os.Truncate(w.disk(w.own("notebook")), 0); err != nil {
			t.Fatal(err)
		}
		writes(0)
		if used, until := writes(spaceStep); used != 0 || until != nil {
			t.Errorf("after it has deleted its files, %d used, read-only from %v on", used, until)
		}
	})
}

// A former leader records no measurement of what fills the disk.
func TestAFormerLeaderWatchesNoSpace(t *testing.T) {
	storetest.EachTakeover(t, 3, func(t *testing.T, s *store.Store) func(context.Context) error {
		w := newWorld(t, s, t.TempDir())
		w.limit(t, 1)
		w.works(t)
		if err := os.WriteFile(w.disk(w.own("notebook")), make([]byte, 2*mebibyte), 0o644); err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context) error { return w.lookAtSpace(ctx, new(int64(1<<50))) }
	})
}
