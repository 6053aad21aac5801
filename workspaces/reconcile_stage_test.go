package workspaces_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/runtime"
)

// What the runtime says of a start that takes a while stands in the history,
// each thing once.
func TestWhatAStartWaitsFor(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.runtime.silent = true
		w := b.launch(t, "a", models.LaunchParameters{})
		b.Tick(b.ctx)
		for _, says := range []string{"no node", "fetching", "no node", "fetching"} {
			b.runtime.says = models.Say(says)
			for range 3 {
				b.clock.Advance(2 * time.Second)
				b.Tick(b.ctx)
			}
		}
		b.runtime.stage = runtime.StagePulling
		b.Tick(b.ctx)
		b.clock.Advance(29 * time.Minute)
		b.Tick(b.ctx)
		var lines []string
		events, err := b.store.Read(b.ctx).WorkspaceEvents(w.ID)
		for _, e := range events[3:] { // after the request, the place and the launch
			lines = append(lines, e.Message.String())
		}
		if err != nil || !slices.Equal(lines, []string{"no node", "fetching"}) || b.row(t, w.ID).State != models.StateStarting {
			t.Errorf("%s: %q, %v", b.row(t, w.ID).State, lines, err)
		}
		b.clock.Advance(2 * time.Minute)
		b.until(t, w.ID, models.StateFailed)
	})
}

// A start goes on as long as it reaches new stages. Other words for the same
// stage, or a stage that it had reached before, give it no more time.
func TestAStartIsGivenUpByItsStage(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.runtime.silent = true
		w := b.launch(t, "a", models.LaunchParameters{})
		b.Tick(b.ctx)
		at := func(stage runtime.Stage, says string, passed time.Duration) models.WorkspaceState {
			b.runtime.stage, b.runtime.says = stage, models.Say(says)
			b.Tick(b.ctx)
			b.clock.Advance(passed)
			b.Tick(b.ctx)
			return b.row(t, w.ID).State
		}
		for _, step := range []struct {
			stage  runtime.Stage
			says   string
			passed time.Duration
		}{
			{runtime.StageScheduling, "no node", 9 * time.Minute},
			{runtime.StagePulling, "fetching", 29 * time.Minute},
			{runtime.StageMountFailed, "no storage", 2 * time.Minute},
			{runtime.StagePulling, "fetching again", time.Minute},
			{runtime.StageMountFailed, "still no storage", 2 * time.Minute},
		} {
			if got := at(step.stage, step.says, step.passed); got != models.StateStarting {
				t.Fatalf("%s: %s", step.says, got)
			}
		}
		if got := at(runtime.StageMountFailed, "once more no storage", time.Second); got == models.StateStarting {
			t.Error("it goes on for ever")
		}
		b.restart() // that it has failed is written down
		if w = b.until(t, w.ID, models.StateFailed); w.Reason.String() != "Launch failed: No progress for 300 seconds: once more no storage" {
			t.Errorf("%q", w.Reason)
		}
	})
}

// What cannot be observed any more is not said to run as ever, until it can be again.
func TestUnobserved(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := b.until(t, b.launch(t, "a", models.LaunchParameters{}).ID, models.StateRunning)
		looks := func(n int) (reason string) {
			for range n {
				b.clock.Advance(5 * time.Second)
				b.Tick(b.ctx)
			}
			got := b.row(t, w.ID)
			if got.State != models.StateRunning {
				t.Fatalf("it is %s", got.State)
			}
			return got.Reason.String()
		}
		b.runtime.away = errors.New("what runs cannot be read")
		if got := looks(4); got != "" {
			t.Errorf("after four looks: %q", got)
		}
		if got := looks(1); got != "The notebook cannot be observed now: it is not known whether it still runs." {
			t.Errorf("after five looks: %q", got)
		}
		version := b.row(t, w.ID).Version
		if looks(3); b.row(t, w.ID).Version != version {
			t.Error("each look is told")
		}
		b.runtime.away = nil
		if got := looks(1); got != "" {
			t.Errorf("it can be observed again: %q", got)
		}
		b.runtime.away = errors.New("what runs cannot be read")
		looks(5)
		b.runtime.away = nil
		b.runtime.kill(w.ID, w.Generation)
		<-b.runtime.running[[2]int64{w.ID, w.Generation}].exited
		b.poll(t, "it has failed", func() bool {
			b.clock.Advance(5 * time.Second)
			b.Tick(b.ctx)
			return b.row(t, w.ID).State == models.StateFailed
		})
		if got := b.row(t, w.ID); strings.Contains(got.Reason.String(), "observed") || got.LogTail != "last words" {
			t.Errorf("it ended meanwhile: %q, %q", got.Reason, got.LogTail)
		}
	})
}

// A cluster that does not respond fails no start, however long it is away.
func TestAStartOutlastsAnOutage(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.runtime.silent, b.runtime.stage = true, runtime.StageMountFailed
		w := b.launch(t, "a", models.LaunchParameters{})
		b.Tick(b.ctx)
		b.Tick(b.ctx)
		b.runtime.away = models.Unavailable(nil, "The cluster is not responding.")
		for range 3 {
			b.Tick(b.ctx)
			b.clock.Advance(10 * time.Minute)
		}
		b.runtime.away = nil
		b.Tick(b.ctx)
		if got := b.row(t, w.ID); got.State != models.StateStarting {
			t.Errorf("it is %s: %s", got.State, got.Reason)
		}
		b.runtime.silent = false
		b.until(t, w.ID, models.StateRunning)
	})
}
