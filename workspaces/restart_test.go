package workspaces_test

import (
	"errors"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/workspaces"
	"weir/workspaces/idleness"
	"weir/workspaces/runtime"
)

// A restart starts the next generation when the one before is gone, in the same share, also
// if the server ends in between.
func TestRestart(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := idleBench(t, b)
		b.pass(t, 20)
		before := b.row(t, w.ID)
		if _, err := b.Restart(b.ctx, b.actor, w.ID); err != nil {
			t.Fatal(err)
		}
		if got := b.row(t, w.ID); got.State != models.StateStarting || !got.Restarting || got.Endpoint.Address != "" || b.shares(t) != 50 {
			t.Errorf("restarting: %+v, %d cores", got, b.shares(t))
		}
		want(t, second(b.Restart(b.ctx, b.actor, w.ID)), models.KindConflict, "starting")
		b.runtime.stop = func(runtime.State) error {
			if b.runtime.starts != 1 || b.shares(t) != 50 {
				t.Errorf("before the former one is gone: %d starts, %d cores", b.runtime.starts, b.shares(t))
			}
			return nil
		}
		b.Tick(b.ctx)
		b.restart() // of the server
		b.until(t, w.ID, models.StateRunning)
		got := b.row(t, w.ID)
		if got.Generation != 2 || got.Restarting || b.runtime.starts != 2 || len(b.runtime.alive()) != 1 || b.shares(t) != 50 ||
			string(got.RuntimeState) == string(before.RuntimeState) {
			t.Errorf("restarted: %+v, %d starts, alive %v, %d cores", got, b.runtime.starts, b.runtime.alive(), b.shares(t))
		}
		b.pass(t, 1)
		if idle := b.idleness(t, w.ID); idle.WorkedAt.Before(b.store.Now().Add(-2*time.Minute)) || idle.Reminded {
			t.Errorf("it was idle before its restart, which counts as work: %+v", idle)
		}
		if !got.StartedAt.Equal(*before.StartedAt) {
			t.Errorf("its use began at %s, not at %s, which the restart forgot", before.StartedAt, got.StartedAt)
		}
		b.runtime.stop = nil
		if _, err := b.Stop(b.ctx, b.actor, w.ID); err != nil {
			t.Fatal(err)
		}
		b.until(t, w.ID, models.StateStopped)
		if b.shares(t) != 0 || len(b.runtime.alive()) != 0 {
			t.Errorf("stopped: %d cores, alive %v", b.shares(t), b.runtime.alive())
		}
		want(t, second(b.Restart(b.ctx, b.actor, w.ID)), models.KindConflict, "stopped")
	})
}

// On a full disk, what runs is left alone: it could not start again.
func TestRestartOnAFullDisk(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		w := b.until(t, b.launch(t, "a", gpu(1, 50)).ID, models.StateRunning)
		b.store.AddDisk(models.Say("the workspaces"), "/proc") // which has no space
		b.clock.Advance(time.Second)
		full := "The disk of the workspaces is full: 0 MiB is left"
		want(t, second(b.Restart(b.ctx, b.actor, w.ID)), models.KindUnavailable, full)
		want(t, second(b.Launch(b.ctx, b.actor, b.ask("b", models.LaunchParameters{}))), models.KindUnavailable, full)
		if got := b.row(t, w.ID); got.State != models.StateRunning {
			t.Errorf("it is %s: %s", got.State, got.Reason)
		}
	})
}

// What is stopped while it restarts does not start again.
func TestStoppedWhileItRestarts(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := idleBench(t, b)
		b.runtime.stop = func(runtime.State) error { return errors.New("not yet") }
		if _, err := b.Restart(b.ctx, b.actor, w.ID); err != nil {
			t.Fatal(err)
		}
		b.Tick(b.ctx)
		if _, err := b.Stop(b.ctx, b.actor, w.ID); err != nil {
			t.Fatal(err)
		}
		b.runtime.stop = nil
		b.clock.Advance(time.Minute)
		got := b.until(t, w.ID, models.StateStopped)
		if got.Restarting || b.runtime.starts != 1 || len(b.runtime.alive()) != 0 || b.shares(t) != 0 {
			t.Errorf("%+v, %d starts, alive %v, %d cores", got, b.runtime.starts, b.runtime.alive(), b.shares(t))
		}
	})
}

func TestWhoMayRestart(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := idleBench(t, b)
		_, other := b.addMember(t, b.role)
		want(t, second(b.Restart(b.ctx, other, w.ID)), models.KindForbidden)
		want(t, second(b.Restart(b.ctx, b.root, w.ID)), models.KindForbidden, "Only its owner")
		storetest.InTx(t, b.store, func(q *store.Queries) error {
			e, err := q.Environment(w.EnvironmentID)
			if err == nil {
				e.Unavailable = models.Say("the installation is no longer on this machine")
				err = q.UpdateEnvironment(&e)
			}
			return err
		})
		want(t, second(b.Restart(b.ctx, b.actor, w.ID)), models.KindConflict, "no longer on this machine")
		if got := b.row(t, w.ID); got.State != models.StateRunning {
			t.Errorf("it is %s", got.State)
		}
		_, stranger := b.addMember(t, b.addRole(t, b.addProject(t, "audio", plenty), "engineer", models.Resources{}))
		want(t, second(b.Restart(b.ctx, stranger, w.ID)), models.KindNotFound)
		for _, c := range []struct {
			who  string
			may  bool
			view func() (workspaces.View, error)
		}{
			{"the owner", true, func() (workspaces.View, error) { return b.View(b.ctx, b.actor, w.ID) }},
			{"an administrator", false, func() (workspaces.View, error) { return b.View(b.ctx, b.root, w.ID) }},
		} {
			if v, err := c.view(); err != nil || v.CanRestart != c.may {
				t.Errorf("%s: %t, %v", c.who, v.CanRestart, err)
			}
		}
	})
}

// What a workspace used is the difference of the totals that its notebook server reports,
// and is forgotten after an hour.
func TestTelemetry(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := idleBench(t, b)
		cpu := time.Duration(0)
		b.activity = func() (idleness.Observation, error) {
			cpu += 30 * time.Second
			return idleness.Observation{CPU: cpu, MemoryBytes: 300 << 20}, nil
		}
		b.pass(t, 3)
		list, err := b.Telemetry(b.ctx, b.actor, w.ID)
		if err != nil || len(list) != 2 {
			t.Fatalf("%+v, %v: two differences", list, err)
		}
		for _, m := range list {
			if m.CPUMilli != 500 || m.MemoryMiB != 300 || m.GPUPercent == nil || *m.GPUPercent != 25 {
				t.Errorf("30 s of CPU in a minute, on half a simulated GPU: %+v", m)
			}
		}
		b.simulated(t, models.HolderWorkspace, new(int64(25)))
		cpu = 0 // another server, whose totals begin anew
		b.pass(t, 1)
		if list, err = b.Telemetry(b.ctx, b.actor, w.ID); err != nil || len(list) != 2 {
			t.Errorf("%+v, %v: smaller totals tell nothing", list, err)
		}
		_, stranger := b.addMember(t, b.addRole(t, b.addProject(t, "audio", plenty), "engineer", models.Resources{}))
		want(t, second(b.Telemetry(b.ctx, stranger, w.ID)), models.KindNotFound)
		b.activity = func() (idleness.Observation, error) { return idleness.Observation{}, errors.New("busy") }
		b.pass(t, 60)
		if rows, err := b.store.Read(b.ctx).WorkspaceTelemetry(w.ID, time.Time{}); err != nil || len(rows) != 0 {
			t.Errorf("after an hour: %+v, %v", rows, err)
		}
	})
}
