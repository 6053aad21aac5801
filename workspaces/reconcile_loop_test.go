package workspaces_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/runtime"
)

// Many hands start and stop many workspaces, each once, and what is heard
// from the database is enough: nobody calls Resync.
func TestRun(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		const many = 8 // the role's peak
		ctx, stop := context.WithCancel(b.ctx)
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		defer running.Wait()
		defer stop()
		var ids []int64
		for i := range many {
			ids = append(ids, b.launch(t, fmt.Sprint("w", i), models.LaunchParameters{}).ID)
		}
		for _, id := range ids {
			b.poll(t, fmt.Sprint(id, " runs"), func() bool { return b.row(t, id).State == models.StateRunning })
		}
		if b.runtime.count() != many || len(b.runtime.alive()) != many {
			t.Errorf("%d starts, %d run", b.runtime.count(), len(b.runtime.alive()))
		}
		for _, id := range ids {
			if _, err := b.Stop(b.ctx, b.actor, id); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range ids {
			b.poll(t, fmt.Sprint(id, " is stopped"), func() bool { return b.row(t, id).State == models.StateStopped })
		}
		if b.runtime.count() != many || len(b.runtime.alive()) != 0 {
			t.Errorf("%d starts, %d run", b.runtime.count(), len(b.runtime.alive()))
		}
	})
}

// A workspace that dies unseen is found by the rounds.
func TestRunFindsWhatNobodyTold(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := b.until(t, b.launch(t, "a", models.LaunchParameters{}).ID, models.StateRunning)
		ctx, stop := context.WithCancel(b.ctx)
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		defer running.Wait()
		defer stop()
		b.runtime.kill(w.ID, w.Generation)
		b.poll(t, "it has failed", func() bool { return b.row(t, w.ID).State == models.StateFailed })
	})
}

// Who leads again looks after what began to stop meanwhile, though it met it
// before, and though nobody told.
func TestRunAgain(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		run := func() (end func()) {
			ctx, stop := context.WithCancel(b.ctx)
			var running sync.WaitGroup
			running.Go(func() { b.Run(ctx) })
			return func() { stop(); running.Wait() }
		}
		end := run()
		w := b.launch(t, "a", models.LaunchParameters{})
		b.poll(t, "it runs", func() bool { return b.row(t, w.ID).State == models.StateRunning })
		end()
		if _, err := b.Stop(b.ctx, b.actor, w.ID); err != nil {
			t.Fatal(err)
		}
		defer run()()
		b.poll(t, "it is stopped", func() bool { return b.row(t, w.ID).State == models.StateStopped })
	})
}

// A change that the database did not tell of is found.
func TestRunFindsAStopThatNobodyTold(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		ctx, stop := context.WithCancel(b.ctx)
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		defer running.Wait()
		defer stop()
		w := b.launch(t, "a", models.LaunchParameters{})
		b.poll(t, "it runs", func() bool { return b.row(t, w.ID).State == models.StateRunning })
		db, err := b.store.SQL()
		if err != nil {
			t.Fatal(err)
		}
		b.poll(t, "the row is changed", func() bool {
			_, err := db.Exec("UPDATE workspaces SET state = 'stopping', version = version + 1 WHERE state = 'running'")
			return err == nil && b.row(t, w.ID).State != models.StateRunning
		})
		b.poll(t, "it is stopped", func() bool { return b.row(t, w.ID).State == models.StateStopped })
	})
}

// What refuses to end is asked with pauses, however the refusal is worded.
func TestRunHasPatienceWithARefusal(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		var asked atomic.Int64
		b.runtime.stop = func(runtime.State) error {
			asked.Add(1)
			return models.Conflict("somebody forbids it")
		}
		w := b.until(t, b.launch(t, "a", models.LaunchParameters{}).ID, models.StateRunning)
		if _, err := b.Stop(b.ctx, b.actor, w.ID); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			b.Tick(b.ctx)
		}
		if asked.Load() != 1 {
			t.Errorf("asked %d times though no time has passed", asked.Load())
		}
		b.runtime.stop = nil
		b.clock.Advance(5 * time.Second)
		b.until(t, w.ID, models.StateStopped)
	})
}
