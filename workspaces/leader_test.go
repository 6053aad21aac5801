package workspaces_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/storage/rules"
)

// A reconciler that no longer leads changes nothing: it neither evicts, recalls, places,
// starts, fails and removes what has expired.
func TestAFormerLeaderReconcilesNothing(t *testing.T) {
	storetest.EachTakeover(t, 5, func(t *testing.T, s *store.Store) func(context.Context) error {
		b := newWorld(t, s)
		b.gpus(t, 1)
		running := b.until(t, b.launch(t, "running", gpu(1, 50)).ID, models.StateRunning)
		b.queue(t, b.actor, "evicted")
		_, other := b.addMember(t, b.role)
		b.queue(t, other, "placed")
		storetest.InTx(t, s, func(q *store.Queries) error { // the pool has room again
			return b.pool.Release(q, running.ID)
		})
		_, third := b.addMember(t, b.role)
		in := b.ask("starting", gpu(0, 0))
		if w, err := b.Launch(b.ctx, third, in); err != nil || w.State != models.StateStarting {
			t.Fatalf("%+v, %v", w, err)
		}
		storetest.InTx(t, s, func(q *store.Queries) error {
			u := b.actor.User
			u.Disabled = true
			return errors.Join(q.UpdateUser(&u), q.PutVisit(models.Visit{Hash: "expired", WorkspaceID: running.ID, UserID: u.ID, ExpiresAt: q.Now()}))
		})
		b.runtime.kill(running.ID, running.Generation)
		<-b.runtime.running[[2]int64{running.ID, running.Generation}].exited
		b.clock.Advance(time.Hour) // everything periodic is due
		return func(ctx context.Context) error {
			b.Tick(ctx)
			return nil
		}
	})
}

// A workspace whose shares or reservation have ended is stopped by the leader only.
func TestAFormerLeaderStopsNothing(t *testing.T) {
	storetest.EachTakeover(t, 2, func(t *testing.T, s *store.Store) func(context.Context) error {
		b := newWorld(t, s)
		service, r := b.reserved(t, 60)
		b.begin(t, service)
		in := b.ask("a", models.LaunchParameters{})
		in.ReservationID = r.ID
		w, err := b.Launch(b.ctx, b.actor, in)
		if err != nil {
			t.Fatal(err)
		}
		b.until(t, w.ID, models.StateRunning)
		b.clock.Advance(2 * time.Hour)
		return func(ctx context.Context) error {
			b.Tick(ctx)
			return nil
		}
	})
}

// A former leader neither reminds of idleness nor stops what is idle.
func TestAFormerLeaderObservesNothing(t *testing.T) {
	storetest.EachTakeover(t, 2, func(t *testing.T, s *store.Store) func(context.Context) error {
		b := newWorld(t, s)
		idleBench(t, b)
		b.pass(t, 49)
		return func(ctx context.Context) error {
			var err error
			for range 20 {
				b.clock.Advance(time.Minute)
				err = errors.Join(err, b.ObserveAll(ctx))
			}
			return err
		}
	})
}

// A former leader records no mounts.
func TestAFormerLeaderRefreshesNothing(t *testing.T) {
	storetest.EachTakeover(t, 1, func(t *testing.T, s *store.Store) func(context.Context) error {
		b := newWorld(t, s)
		b.until(t, b.launch(t, "a", gpu(0, 0)).ID, models.StateRunning)
		storetest.InTx(t, s, func(q *store.Queries) error {
			return q.PutFileRule(&models.FileRule{ProjectID: b.project.ID, Path: models.FilePath(rules.ProjectDir(b.project.ID) + "/project_model"),
				Subject: models.SubjectProject, Access: models.AccessRead, Download: models.DownloadInherit, ChangedAt: q.Now()})
		})
		return b.RefreshAll
	})
}
