package workspaces_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/projects"
	"weir/workspaces"
	"weir/workspaces/runtime"
)

func TestFromLaunchToStop(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		w := b.launch(t, "a", gpu(1, 50))
		if w.State != models.StateStarting || w.Generation != 1 || b.shares(t) != 50 {
			t.Errorf("launched: %s, generation %d, %d cores", w.State, w.Generation, b.shares(t))
		}
		w = b.until(t, w.ID, models.StateRunning)
		if w.Endpoint.Address == "" || w.StartedAt == nil || w.Progress != 100 {
			t.Errorf("running: %+v", w)
		}
		spec := b.runtime.specs[0]
		if spec.Token != w.Secret || len(spec.Mounts) < 8 || len(spec.GPUs) != 1 || spec.GPUs[0].Cores != 50 || spec.Memory != w.Demand.MemoryMiB {
			t.Errorf("spec: %+v", spec)
		}
		if providers, err := b.store.Read(b.ctx).Providers(); err != nil || spec.Node == "" || spec.Node != providers[0].Name {
			t.Errorf("it shall run on %q, of %+v, %v", spec.Node, providers, err)
		}
		if _, err := b.Stop(b.ctx, b.actor, w.ID); err != nil {
			t.Fatal(err)
		}
		if got := b.row(t, w.ID); got.State != models.StateStopping || b.shares(t) != 50 {
			t.Errorf("%s with %d cores: shares are kept until it is gone", got.State, b.shares(t))
		}
		want(t, second(b.Stop(b.ctx, b.actor, w.ID)), models.KindConflict)
		w = b.until(t, w.ID, models.StateStopped)
		if b.shares(t) != 0 || len(b.runtime.alive()) != 0 || w.EndedAt == nil || w.RuntimeState != nil {
			t.Errorf("stopped: %d cores, %v, %+v", b.shares(t), b.runtime.alive(), w)
		}
		want(t, second(b.Stop(b.ctx, b.actor, w.ID)), models.KindConflict)
		entries, err := b.store.Read(b.ctx).Audit(store.AuditFilter{}, store.Page{Limit: 2})
		if err != nil || entries[0].Action != "stop" || entries[1].Action != "launch" || entries[1].Actor != b.actor.User.Email {
			t.Errorf("audit: %+v, %v", entries, err)
		}
	})
}

func TestWhatExitsHasFailed(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		crash := b.environment(t, workspaces.EnvironmentInput{Name: "crash", Command: []string{"/bin/sh", "-c", "exit 3"}})
		in := b.ask("a", gpu(1, 50))
		in.EnvironmentID = crash.ID
		w, err := b.Launch(b.ctx, b.actor, in)
		if err != nil {
			t.Fatal(err)
		}
		w = b.until(t, w.ID, models.StateFailed)
		if w.Reason.String() != "exited with code 3" || w.LogTail != "last words" || b.shares(t) != 0 {
			t.Errorf("failed: %q, log %q, %d cores", w.Reason, w.LogTail, b.shares(t))
		}
		b.launch(t, "a", gpu(1, 50)) // the name and the share are free
	})
}

// A workspace whose notebook has ended while no server looked is charged until its end, as far as another
// clock says it.
func TestNotebookEndsUnseen(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		for said, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, time.Hour: 10 * time.Minute, -time.Hour: 0} {
			w := b.until(t, b.launch(t, "a", gpu(1, 100)).ID, models.StateRunning)
			began := *w.StartedAt
			shares, err := b.store.Read(b.ctx).SharesOf(w.HolderID)
			if err != nil || len(shares) != 1 {
				t.Fatalf("%d shares, %v", len(shares), err)
			}
			b.runtime.kill(w.ID, w.Generation)
			b.poll(t, "the notebook has ended", func() bool {
				s, err := b.runtime.Poll(b.ctx, w.RuntimeState)
				return err == nil && s.Phase == runtime.PhaseExited
			})
			b.runtime.ended = began.Add(said)
			b.clock.Advance(began.Add(10 * time.Minute).Sub(b.clock.Now()))
			if w = b.until(t, w.ID, models.StateFailed); !w.EndedAt.Equal(began.Add(want)) {
				t.Errorf("said to have ended after %s, it has ended after %s", said, w.EndedAt.Sub(began))
			}
			history, err := b.store.Read(b.ctx).ShareHistory(shares[0].DeviceID, 1)
			if err != nil || history[0].Until == nil || !history[0].Until.Equal(began.Add(want)) {
				t.Errorf("said to have ended after %s, its share: %+v, %v", said, history, err)
			}
		}
	})
}

func TestAStartThatFails(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		b.runtime.refuse = errors.New("secret path /x")
		w := b.until(t, b.launch(t, "a", gpu(1, 50)).ID, models.StateFailed)
		if w.Reason.String() != "Launch failed: The notebook could not be launched." || b.shares(t) != 0 {
			t.Errorf("%q, %d cores", w.Reason, b.shares(t))
		}
	})
}

func TestWhatNeverAnswersHasFailed(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.runtime.silent = true
		w := b.launch(t, "a", models.LaunchParameters{})
		b.Tick(b.ctx)
		b.Tick(b.ctx)
		b.clock.Advance(3 * time.Second)
		b.Tick(b.ctx)
		b.clock.Advance(2*time.Minute - 3*time.Second)
		b.Tick(b.ctx)
		if got := b.row(t, w.ID); got.State != models.StateStarting || got.Progress != 50 {
			t.Errorf("%s, %d percent", got.State, got.Progress)
		}
		b.clock.Advance(time.Second)
		w = b.until(t, w.ID, models.StateFailed)
		if want := "Launch failed: No progress for 120 seconds: starting"; len(b.runtime.alive()) != 0 || w.Reason.String() != want {
			t.Errorf("%v, %q", b.runtime.alive(), w.Reason)
		}
	})
}

// A start that was tried and may have launched something, and is then refused,
// keeps its shares as well.
func TestAStartThatIsRefusedLater(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		b.runtime.halfWay = models.Unavailable(errors.New("the answer was lost"), "The cluster is not responding.")
		w := b.launch(t, "a", gpu(1, 50))
		b.Tick(b.ctx)
		if len(b.runtime.alive()) != 1 || b.row(t, w.ID).State != models.StateStarting {
			t.Fatalf("%v, %s", b.runtime.alive(), b.row(t, w.ID).State)
		}
		b.runtime.refuse = errors.New("no")
		b.runtime.stop = func(runtime.State) error {
			if b.shares(t) != 50 {
				t.Error("its shares are free while it runs")
			}
			return nil
		}
		b.clock.Advance(5 * time.Second)
		b.until(t, w.ID, models.StateFailed)
		if b.shares(t) != 0 || len(b.runtime.alive()) != 0 {
			t.Errorf("%d cores, %v", b.shares(t), b.runtime.alive())
		}
	})
}

// What turns out of a workspace that runs stands in its history, once each time.
func TestWhatBefallsARunningWorkspace(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := b.until(t, b.launch(t, "a", models.LaunchParameters{}).ID, models.StateRunning)
		for _, says := range []string{"", "the node is silent", "", "the node is silent"} {
			b.runtime.warns = models.Text{}
			if says != "" {
				b.runtime.warns = models.Say(says)
			}
			for range 3 {
				b.clock.Advance(2 * time.Second)
				b.Tick(b.ctx)
			}
		}
		var lines []string
		events, err := b.store.Read(b.ctx).WorkspaceEvents(w.ID)
		for _, e := range events[4:] { // from the request to the start
			lines = append(lines, e.Message.String())
		}
		if err != nil || !slices.Equal(lines, []string{"the node is silent", "running", "the node is silent"}) {
			t.Errorf("%q, %v", lines, err)
		}
	})
}

// A runtime that is out of reach for a while fails nobody's start.
func TestAStartIsTriedAgain(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		b.runtime.refuse = models.Unavailable(errors.New("connection refused"), "The cluster is not responding.")
		w := b.launch(t, "a", gpu(1, 50))
		for range 20 {
			b.Tick(b.ctx)
			b.clock.Advance(5 * time.Second)
		}
		events, err := b.store.Read(b.ctx).WorkspaceEvents(w.ID)
		if got := b.row(t, w.ID); err != nil || got.State != models.StateStarting || len(events) != 3 || events[2].Message.String() != "The cluster is not responding." {
			t.Fatalf("%s: %+v, %v", got.State, events, err)
		}
		b.runtime.refuse = nil
		b.clock.Advance(15 * time.Second)
		b.until(t, w.ID, models.StateRunning)
		if b.runtime.starts != 1 {
			t.Errorf("started %d times", b.runtime.starts)
		}

		b.runtime.refuse = models.Unavailable(errors.New("connection refused"), "The cluster is not responding.")
		w = b.launch(t, "b", gpu(1, 50))
		b.Tick(b.ctx)
		b.clock.Advance(121 * time.Second)
		w = b.until(t, w.ID, models.StateFailed)
		if w.Reason.String() != "Launch failed: The cluster is not responding." || b.shares(t) != 50 {
			t.Errorf("%q, %d cores", w.Reason, b.shares(t))
		}
	})
}

// Where a start has failed but may have launched something, its shares are
// kept until that is gone.
func TestAStartThatFailsHalfWay(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		b.runtime.halfWay = errors.New("the secret was refused")
		w := b.launch(t, "a", gpu(1, 50))
		b.runtime.stop = func(runtime.State) error {
			if b.shares(t) != 50 {
				t.Error("its shares are free while it runs")
			}
			return nil
		}
		w = b.until(t, w.ID, models.StateFailed)
		if w.Reason.String() != "Launch failed: The notebook could not be launched." || b.shares(t) != 0 || len(b.runtime.alive()) != 0 {
			t.Errorf("%q, %d cores, %v", w.Reason, b.shares(t), b.runtime.alive())
		}
	})
}

// The process dies after the launch and before the row is saved: the next one
// adopts what runs and starts nothing.
func TestLaunchedButNotSavedIsAdopted(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := b.launch(t, "a", models.LaunchParameters{})
		ctx, die := context.WithCancel(b.ctx)
		b.runtime.afterLaunch = die
		b.Tick(ctx)
		if got := b.row(t, w.ID); got.RuntimeState != nil || len(b.runtime.alive()) != 1 {
			t.Fatalf("the crash did not happen: %q, %v", got.RuntimeState, b.runtime.alive())
		}
		b.restart()
		b.until(t, w.ID, models.StateRunning)
		if b.runtime.starts != 1 {
			t.Errorf("started %d times", b.runtime.starts)
		}
		b.restart()
		b.Tick(b.ctx)
		if got := b.row(t, w.ID); got.State != models.StateRunning || b.runtime.starts != 1 {
			t.Errorf("after another restart: %s, started %d times", got.State, b.runtime.starts)
		}
	})
}

// The member stops while the runtime launches, so the launch is not saved.
func TestStoppedWhileItLaunches(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		w := b.launch(t, "a", gpu(1, 100))
		b.runtime.afterLaunch = func() {
			if _, err := b.Stop(b.ctx, b.actor, w.ID); err != nil {
				t.Error(err)
			}
		}
		b.runtime.stop = func(runtime.State) error {
			if b.shares(t) != 100 {
				t.Error("its shares are free while it runs")
			}
			return nil
		}
		w = b.until(t, w.ID, models.StateStopped)
		if len(b.runtime.alive()) != 0 || b.shares(t) != 0 {
			t.Errorf("alive: %v, %d cores", b.runtime.alive(), b.shares(t))
		}
	})
}

func TestOrphansAreStopped(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := b.until(t, b.launch(t, "a", models.LaunchParameters{}).ID, models.StateRunning)
		for _, spec := range []runtime.Spec{{Workspace: 999, Generation: 1}, {Workspace: w.ID, Generation: 7}} {
			spec.Command = []string{"/bin/sleep", "600"}
			if _, err := b.runtime.Start(b.ctx, spec); err != nil {
				t.Fatal(err)
			}
		}
		b.poll(t, "one is left", func() bool {
			b.clock.Advance(time.Second)
			b.Tick(b.ctx)
			return len(b.runtime.alive()) == 1
		})
		if left := b.runtime.alive()[0]; left != [2]int64{w.ID, 1} {
			t.Errorf("left: %v", left)
		}
	})
}

// One thing that cannot be stopped does not keep the others from starting.
func TestAnOrphanThatStaysHoldsNobodyUp(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		if _, err := b.runtime.Start(b.ctx, runtime.Spec{Workspace: 999, Generation: 1, Command: []string{"/bin/sleep", "600"}}); err != nil {
			t.Fatal(err)
		}
		b.runtime.stop = func(s runtime.State) error {
			if string(s) == "999/1" {
				return errors.New("it does not listen")
			}
			return nil
		}
		w := b.until(t, b.launch(t, "a", models.LaunchParameters{}).ID, models.StateRunning)
		if _, err := b.Stop(b.ctx, b.actor, w.ID); err != nil {
			t.Fatal(err)
		}
		b.until(t, w.ID, models.StateStopped)
	})
}

// Whatever ends a right stops what ran by it, and says so.
func TestEviction(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, b *world) error
	}{
		{"removed member", func(t *testing.T, b *world) error {
			return b.projects.RemoveMember(b.ctx, b.root, b.project.ID, b.member.ID)
		}},
		{"end of the membership", func(t *testing.T, b *world) error {
			until := b.store.Now().Add(time.Hour)
			_, err := b.projects.UpdateMember(b.ctx, b.root, b.project.ID, b.member.ID, projects.MemberInput{RoleID: b.role.ID, Until: &until})
			b.clock.Advance(time.Hour)
			return err
		}},
		{"period of use", func(t *testing.T, b *world) error {
			ends := b.store.Now().Add(time.Hour)
			_, err := b.projects.UpdateProject(b.ctx, b.root, b.project.ID, projects.ProjectInput{Name: "vision", Quota: plenty.Input(), EndsAt: &ends})
			b.clock.Advance(time.Hour)
			return err
		}},
		{"disabled account", func(t *testing.T, b *world) error {
			u := b.actor.User
			u.Disabled = true
			return b.store.InTx(b.ctx, func(q *store.Queries) error { return q.UpdateUser(&u) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newWorld(t, storetest.Open(t, "sqlite"))
			b.gpus(t, 1)
			running := b.until(t, b.launch(t, "running", gpu(1, 100)).ID, models.StateRunning)
			in := b.ask("queued", gpu(1, 100))
			in.WhenInsufficient = workspaces.WhenInsufficientWait
			queued, err := b.Launch(b.ctx, b.actor, in)
			if err != nil {
				t.Fatal(err)
			}
			b.Tick(b.ctx)
			if got := b.row(t, running.ID).State; got != models.StateRunning {
				t.Fatalf("evicted too early: %s", got)
			}
			if err := c.end(t, b); err != nil {
				t.Fatal(err)
			}
			b.until(t, running.ID, models.StateStopped)
			b.until(t, queued.ID, models.StateStopped)
			if b.shares(t) != 0 || len(b.runtime.alive()) != 0 {
				t.Errorf("%d cores, %v", b.shares(t), b.runtime.alive())
			}
			entries, err := b.store.Read(b.ctx).Audit(store.AuditFilter{}, store.Page{})
			evicted := slices.DeleteFunc(entries, func(e models.AuditEntry) bool { return e.Action != "stop" || e.Actor != "weir reconciler" })
			if err != nil || len(evicted) != 2 {
				t.Errorf("%d entries of the audit say so, %v", len(evicted), err)
			}
		})
	}
}

func TestQueueIsServedOldestFirst(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		first := b.until(t, b.launch(t, "first", gpu(1, 100)).ID, models.StateRunning)
		var waiting []models.Workspace
		for _, c := range []struct {
			name  string
			cores int64
		}{{"b", 60}, {"c", 60}, {"d", 30}} {
			in := b.ask(c.name, gpu(1, c.cores))
			in.WhenInsufficient = workspaces.WhenInsufficientWait
			w, err := b.Launch(b.ctx, b.actor, in)
			if err != nil || w.State != models.StateQueued || w.Reason.Empty() {
				t.Fatalf("%+v, %v", w, err)
			}
			waiting = append(waiting, w)
		}
		b.Tick(b.ctx)
		if _, err := b.Stop(b.ctx, b.actor, first.ID); err != nil {
			t.Fatal(err)
		}
		b.until(t, waiting[0].ID, models.StateRunning)
		b.until(t, waiting[2].ID, models.StateRunning) // fits beside it
		if got := b.row(t, waiting[1].ID); got.State != models.StateQueued || b.shares(t) != 90 {
			t.Errorf("the one that does not fit is %s; %d cores", got.State, b.shares(t))
		}
		if w, err := b.Stop(b.ctx, b.actor, waiting[1].ID); err != nil || w.State != models.StateStopped {
			t.Errorf("one that waits ends at once: %s, %v", w.State, err)
		}
	})
}

// Small requests pass a large one that waits, but not for ever.
func TestALargeRequestDoesNotStarve(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		first := b.until(t, b.launch(t, "first", gpu(1, 60)).ID, models.StateRunning)
		_, second := b.addMember(t, b.role)
		in := b.ask("large", gpu(1, 100))
		in.WhenInsufficient = workspaces.WhenInsufficientWait
		large, err := b.Launch(b.ctx, second, in)
		if err != nil || large.State != models.StateQueued {
			t.Fatalf("%+v, %v", large, err)
		}
		_, third := b.addMember(t, b.role)
		early, err := b.Launch(b.ctx, third, b.ask("early", gpu(1, 30)))
		if err != nil {
			t.Fatalf("a small one may pass at first: %v", err)
		}
		if _, err := b.Stop(b.ctx, third, early.ID); err != nil {
			t.Fatal(err)
		}
		b.until(t, early.ID, models.StateStopped)
		b.clock.Advance(11 * time.Minute)
		_, err = b.Launch(b.ctx, third, b.ask("late", gpu(1, 30)))
		var insufficient *workspaces.Insufficient
		if !errors.As(err, &insufficient) || insufficient.Decision.Outcome != models.OutcomeDelayed {
			t.Fatalf("a small one passes for ever: %v", err)
		}
		if _, err := b.Stop(b.ctx, b.actor, first.ID); err != nil {
			t.Fatal(err)
		}
		b.until(t, large.ID, models.StateRunning)
	})
}

// What waits starts only within the role's peak, also when the pool has room.
func TestTheQueueKeepsRule2(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 2)
		_, other := b.addMember(t, b.role)
		var blockers []models.Workspace
		for range 2 {
			w, err := b.Launch(b.ctx, other, workspaces.LaunchInput{ProjectID: b.project.ID, Name: string(rune('a' + len(blockers))), Request: gpu(1, 100)})
			if err != nil {
				t.Fatal(err)
			}
			blockers = append(blockers, w)
		}
		in := b.ask("waits", gpu(2, 100))
		in.WhenInsufficient = workspaces.WhenInsufficientWait
		w, err := b.Launch(b.ctx, b.actor, in)
		if err != nil {
			t.Fatal(err)
		}
		small := projects.RoleInput{Name: "engineer", Permission: "member", Limit: models.Resources{GPUCores: 150, GPUMemoryMiB: 160_000, CPUMilli: 8000, MemoryMiB: 16_384}.Input()}
		for _, blocker := range blockers {
			b.until(t, blocker.ID, models.StateRunning)
			if _, err := b.Stop(b.ctx, other, blocker.ID); err != nil {
				t.Fatal(err)
			}
			b.until(t, blocker.ID, models.StateStopped)
			if _, err := b.projects.UpdateRole(b.ctx, b.root, b.project.ID, b.role.ID, small); models.KindOf(err) == models.KindInternal {
				t.Fatal(err)
			}
		}
		b.Tick(b.ctx)
		if got := b.row(t, w.ID); got.State == models.StateQueued && b.shares(t) != 0 || got.State != models.StateQueued && b.shares(t) > 200 {
			t.Errorf("%s with %d cores", got.State, b.shares(t))
		}
	})
}
