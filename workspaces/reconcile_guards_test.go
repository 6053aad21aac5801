package workspaces_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/projects"
	"weir/workspaces/runtime"
)

// A workspace that launched nothing adopts no process of another generation of
// it: that is an orphan, and holds nothing up.
func TestAnotherGenerationIsNotAdopted(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.Tick(b.ctx) // the search for orphans is not due again until the clock advances
		w := b.launch(t, "a", models.LaunchParameters{})
		other := runtime.Spec{Workspace: w.ID, Generation: w.Generation + 1, Command: []string{"/bin/sleep", "600"}}
		if _, err := b.runtime.Start(b.ctx, other); err != nil {
			t.Fatal(err)
		}
		b.runtime.refuse = errors.New("no")
		b.until(t, w.ID, models.StateFailed)
		if left := b.runtime.alive(); !slices.Equal(left, [][2]int64{{w.ID, 2}}) {
			t.Errorf("the end of generation 1 leaves %v", left)
		}
		b.clock.Advance(5 * time.Second)
		b.poll(t, "the orphan is gone", func() bool { b.Tick(b.ctx); return len(b.runtime.alive()) == 0 })
	})
}

// While the runtime cannot stop a workspace, something of it may still run,
// even if its notebook has exited: its shares are not released.
func TestSharesAreKeptWhileStopFails(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, b *world, w models.Workspace){
		"exited": func(*testing.T, *world, models.Workspace) {},
		"stopped by its member": func(t *testing.T, b *world, w models.Workspace) {
			if _, err := b.Stop(b.ctx, b.actor, w.ID); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWorld(t, storetest.Open(t, "sqlite"))
			b.gpus(t, 1)
			w := b.until(t, b.launch(t, "a", gpu(1, 50)).ID, models.StateRunning)
			asked := 0
			b.runtime.stop = func(runtime.State) error {
				asked++
				return models.Unavailable(errors.New("a child is left"), "The machine is not responding.")
			}
			b.runtime.kill(w.ID, w.Generation)
			<-b.runtime.running[[2]int64{w.ID, w.Generation}].exited
			end(t, b, w)
			b.Tick(b.ctx)
			if got := b.row(t, w.ID); asked == 0 || !got.State.UsesResources() || got.EndedAt != nil || b.shares(t) != 50 {
				t.Errorf("asked %d times to stop, in vain, and it is %s with %d cores, ended at %v", asked, got.State, b.shares(t), got.EndedAt)
			}
			b.runtime.stop = nil
			b.clock.Advance(5 * time.Second)
			b.poll(t, "its shares are released", func() bool { b.Tick(b.ctx); return b.shares(t) == 0 })
		})
	}
}

// A member who stops a workspace while the reconciler moves it on is not refused.
func TestStopDuringATransition(t *testing.T) {
	b := newWorld(t, storetest.Open(t, "postgres"))
	w := b.launch(t, "a", models.LaunchParameters{})
	ended := make(chan error, 1)
	storetest.InTx(t, b.store, func(q *store.Queries) error {
		now, err := q.Workspace(store.AllProjects, w.ID)
		if err != nil {
			return err
		}
		if err := q.Transition(&now, now.State, models.Text{}); err != nil {
			return err
		}
		go func() {
			_, err := b.Stop(b.ctx, b.actor, w.ID)
			ended <- err
		}()
		if !storetest.Waits(t, b.store, q, ended) {
			t.Error("the stop does not wait for the transition")
		}
		return nil
	})
	if err := <-ended; err != nil || b.row(t, w.ID).State != models.StateStopping {
		t.Errorf("%v, and it is %s", err, b.row(t, w.ID).State)
	}
}

// A limit that is reduced after a queued workspace was found to fit is checked
// again in the transaction that would place it.
func TestTheLimitIsCheckedWhereItIsPlaced(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		_, other := b.addMember(t, b.addRole(t, b.project, "other", b.role.Limit))
		first, err := b.Launch(b.ctx, other, b.ask("first", gpu(1, 100)))
		if err != nil {
			t.Fatal(err)
		}
		waits := b.queue(t, b.actor, "waits")
		read := false
		err = b.store.Watch(func(s store.Statement) {
			if read || !strings.Contains(s.SQL, "member_id AS id") {
				return
			}
			read = true // what a member uses, before the transaction
			small := projects.RoleInput{Name: "engineer", Permission: "member", Limit: models.Resources{GPUCores: 50, GPUMemoryMiB: 160_000, CPUMilli: 8000, MemoryMiB: 16_384}.Input()}
			if _, err := b.projects.UpdateRole(b.ctx, b.root, b.project.ID, b.role.ID, small); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		storetest.InTx(t, b.store, func(q *store.Queries) error { return b.pool.Release(q, first.HolderID) })
		if err := b.ServeQueue(b.ctx); err != nil {
			t.Fatal(err)
		}
		if got := b.row(t, waits.ID); !read || got.State != models.StateQueued || b.shares(t) != 0 {
			t.Errorf("%s with %d cores; its limit is 50", got.State, b.shares(t))
		}
	})
}
