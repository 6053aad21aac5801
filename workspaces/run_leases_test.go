package workspaces_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/workspaces"
	"weir/workspaces/runtime"
)

// leased starts a run with a lease in the environment of a workspace.
func (w *runsWorld) leased(workspace int64, request models.LaunchParameters) models.Run {
	w.Helper()
	r, err := w.StartRun(w.ctx, w.actor, workspaces.RunInput{WorkspaceID: workspace, ProjectID: w.project.ID, Name: "Python (GPU) train.ipynb",
		Command: []string{"sleep", "600"}, Request: request, LeaseSeconds: 3600})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// A run with a lease ends with its workspace, because what renews it runs there; one without
// goes on.
func TestRunsEndWithTheirWorkspace(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		ws := w.launch(w.T, "notebook", models.LaunchParameters{})
		leased := w.leased(ws.ID, models.LaunchParameters{})
		in := workspaces.RunInput{WorkspaceID: ws.ID, ProjectID: w.project.ID, Command: []string{"sleep", "600"}}
		free, err := w.StartRun(w.ctx, w.actor, in)
		if err != nil {
			w.Fatal(err)
		}
		w.ticks(leased.ID, models.RunRunning)
		w.ticks(free.ID, models.RunRunning)
		if leased.Name != "Python (GPU) train.ipynb" || free.Name != "sleep" {
			w.Errorf("they are called %q and %q", leased.Name, free.Name)
		}
		if _, err := w.Stop(w.ctx, w.actor, ws.ID); err != nil {
			w.Fatal(err)
		}
		if err := w.TickRuns(w.ctx); err != nil {
			w.Error(err)
		}
		if got := w.run(leased.ID); got.State != models.RunStopping || got.Reason.String() != "Its workspace was stopped." {
			w.Errorf("it is %s: %s", got.State, got.Reason)
		}
		if got := w.run(free.ID); got.State != models.RunRunning {
			w.Errorf("the other one is %s: %s", got.State, got.Reason)
		}
	})
}

// The same holds for a restart, which ends the programs that renewed it.
func TestRunsEndWithTheRestartOfTheirWorkspace(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		ws := w.until(w.T, w.launch(w.T, "notebook", models.LaunchParameters{}).ID, models.StateRunning)
		leased := w.leased(ws.ID, models.LaunchParameters{})
		free, err := w.StartRun(w.ctx, w.actor, workspaces.RunInput{WorkspaceID: ws.ID, ProjectID: w.project.ID, Command: []string{"sleep", "600"}})
		if err != nil {
			w.Fatal(err)
		}
		w.ticks(leased.ID, models.RunRunning)
		w.ticks(free.ID, models.RunRunning)
		if _, err := w.Restart(w.ctx, w.actor, ws.ID); err != nil {
			w.Fatal(err)
		}
		w.until(w.T, ws.ID, models.StateRunning)
		if got := w.run(leased.ID); got.State != models.RunStopping || got.Reason.String() != "Its workspace was restarted." {
			w.Errorf("it is %s: %s", got.State, got.Reason)
		}
		if got := w.run(free.ID); got.State != models.RunRunning {
			w.Errorf("the other one is %s: %s", got.State, got.Reason)
		}
	})
}

// A run with a lease is refused for a workspace that has ended, with which it would end.
func TestLeaseNeedsAWorkspaceThatGoesOn(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		ws := w.until(w.T, w.launch(w.T, "notebook", models.LaunchParameters{}).ID, models.StateRunning)
		in := workspaces.RunInput{WorkspaceID: ws.ID, ProjectID: w.project.ID, Command: []string{"true"}, LeaseSeconds: 60}
		if _, err := w.Stop(w.ctx, w.actor, ws.ID); err != nil {
			w.Fatal(err)
		}
		refused := func() {
			w.Helper()
			_, err := w.StartRun(w.ctx, w.actor, in)
			want(w.T, err, models.KindInvalid, "workspace_id", "a run with a lease ends with its workspace")
			_, err = w.PreviewRun(w.ctx, w.actor, in)
			want(w.T, err, models.KindInvalid, "workspace_id")
		}
		refused()
		w.until(w.T, ws.ID, models.StateStopped)
		refused()
		in.LeaseSeconds = 0
		if _, err := w.StartRun(w.ctx, w.actor, in); err != nil {
			w.Error(err)
		}
	})
}

// An attached run goes on without its workspace and is never idle, until its client is silent.
func TestAttachedRun(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		ws := w.until(w.T, w.launch(w.T, "notebook", models.LaunchParameters{}).ID, models.StateRunning)
		in := workspaces.RunInput{WorkspaceID: ws.ID, ProjectID: w.project.ID, Command: []string{"sleep", "600"}, Attached: true,
			Request: models.LaunchParameters{IdleMinutes: new(int64(10))}}
		_, err := w.StartRun(w.ctx, w.actor, in)
		want(w.T, err, models.KindInvalid, "lease_seconds", "is required")
		in.LeaseSeconds = 600
		if _, err := w.Stop(w.ctx, w.actor, ws.ID); err != nil {
			w.Fatal(err)
		}
		r, err := w.StartRun(w.ctx, w.actor, in)
		if err != nil {
			w.Fatal(err)
		}
		w.ticks(r.ID, models.RunRunning)
		w.until(w.T, ws.ID, models.StateStopped)
		for range 4 {
			w.minutes(5)
			w.check("while it is waited for", r.ID, models.RunRunning, false)
			if _, err := w.RenewRun(w.ctx, w.actor, r.ID, workspaces.RunRenewal{}); err != nil {
				w.Fatal(err)
			}
		}
		w.minutes(12)
		w.check("alone", r.ID, models.RunStopping, false)
		if why := w.run(r.ID).Reason.String(); why != "The client that waited for it was away for 600 seconds." {
			w.Errorf("it ends as %q", why)
		}
		w.runs.polled = nil
		w.ticks(r.ID, models.RunEnded)
		if told := w.told(w.T, w.actor.User); len(told) == 0 || told[len(told)-1] != models.NotificationRunEnded {
			w.Errorf("its user is told of %q", told)
		}
	})
}

// minutes lets time pass, a minute and a round at a time.
func (w *runsWorld) minutes(n int) {
	w.Helper()
	for range n {
		w.clock.Advance(time.Minute)
		if err := w.TickRuns(w.ctx); err != nil {
			w.Fatal(err)
		}
	}
}

// idle starts a run that may be idle for 10 minutes and does nothing. Its processes use what
// used is when they are looked at.
func (w *runsWorld) idle(used func() time.Duration) models.Run {
	w.Helper()
	r := w.ticks(w.leased(0, models.LaunchParameters{IdleMinutes: new(int64(10))}).ID, models.RunRunning)
	w.runs.polled = func(s *runtime.RunStatus) { s.CPU = used() }
	return r
}

func none() time.Duration { return 0 }

// check checks the state of a run, and whether its user is reminded that it is idle.
func (w *runsWorld) check(when string, id int64, state models.RunState, reminded bool) {
	w.Helper()
	if got := w.run(id); got.State != state || (got.RemindedAt != nil) != reminded {
		w.Errorf("%s, it is %s, reminded %v: %s", when, got.State, got.RemindedAt, got.Reason)
	}
}

// A GPU kernel releases its GPU after a limit of its own, whatever that of workspaces is.
func TestKernelIdleLimit(t *testing.T) {
	none, five, hour := int64(0), int64(5), int64(60)
	for _, c := range []struct {
		gpus, kernel int64
		limit        time.Duration
	}{{1, five, 5 * time.Minute}, {1, none, 0}, {0, five, time.Hour}} {
		target, err := workspaces.MergeParameters(workspaces.Layers{Platform: models.LaunchParameters{IdleMinutes: &hour, GPUIdleMinutes: &hour,
			KernelIdleMinutes: new(int64(10))}, Project: models.LaunchParameters{KernelIdleMinutes: &c.kernel}, Limit: plenty,
			Request: models.LaunchParameters{GPUs: &c.gpus}})
		if err != nil {
			t.Fatal(err)
		}
		r := models.Run{LeaseSeconds: 30, Demand: target.Demand, Target: target.Parameters}
		if got := time.Duration(workspaces.RunIdleLimit(r)); got != c.limit {
			t.Errorf("with %d GPUs and a limit of %d minutes: %v", c.gpus, c.kernel, got)
		}
		r.LeaseSeconds = 0
		if got := workspaces.RunIdleLimit(r); got != 0 {
			t.Errorf("without a lease: %v", got)
		}
	}
}

// The user of an idle run is told what its end releases: a run without GPUs has none to release.
func TestIdleRunsSayWhatEnds(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		w.gpus(w.T, 1)
		cpu := w.ticks(w.leased(0, models.LaunchParameters{IdleMinutes: new(int64(10))}).ID, models.RunRunning)
		request := gpu(1, 50)
		request.KernelIdleMinutes = new(int64(10))
		gpu := w.ticks(w.leased(0, request).ID, models.RunRunning)
		w.runs.polled = func(s *runtime.RunStatus) { s.CPU = 0 }
		w.minutes(6)
		told, err := w.store.Read(w.ctx).Notifications(w.actor.User.ID, store.Page{Limit: 10})
		if err != nil {
			w.Fatal(err)
		}
		w.minutes(5)
		for id, words := range map[int64][2]string{cpu.ID: {"The run ", "Stopped: idle for 10 minutes."},
			gpu.ID: {"The GPU of the run ", "Idle for 10 minutes. Its GPU was released."}} {
			i := slices.IndexFunc(told, func(n models.Notification) bool { return n.Link == fmt.Sprintf("/runs/%d", id) })
			if i < 0 || !strings.HasPrefix(told[i].Text.String(), words[0]) {
				w.Errorf("run %d: its user is told %+v", id, told)
			}
			if why := w.run(id).Reason.String(); why != words[1] {
				w.Errorf("run %d: it ends as %q", id, why)
			}
		}
	})
}

// Processes that compute are work, although no cell is executed.
func TestComputingRunIsNotIdle(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		used, more := time.Duration(0), 30*time.Second
		r := w.idle(func() time.Duration { used += more; return used })
		w.minutes(30)
		w.check("while it computes", r.ID, models.RunRunning, false)
		more = 10 * time.Millisecond
		w.minutes(6)
		w.check("idle", r.ID, models.RunRunning, true)
		more = time.Minute
		w.minutes(1)
		w.check("when it computes again", r.ID, models.RunRunning, false)
		more = 0
		w.minutes(9)
		w.check("idle again", r.ID, models.RunRunning, true)
		w.minutes(1) // from the next round on its command can end at any time
		w.check("at last", r.ID, models.RunStopping, true)
		if why := w.run(r.ID).Reason.String(); why != "Stopped: idle for 10 minutes." {
			w.Errorf("it ends as %q", why)
		}
	})
}

// renewer renews the lease of a run while the reconciler looks at what it has read.
func (w *runsWorld) renewer(id int64, in workspaces.RunRenewal) func(*runtime.RunStatus) {
	return func(s *runtime.RunStatus) {
		s.CPU = 0
		if _, err := w.RenewRun(w.ctx, w.actor, id, in); err != nil {
			w.Error(err)
		}
	}
}

// What is kept in the last moment goes on, although the reconciler has read that it is idle.
func TestRunIsKeptInTheLastMoment(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		r := w.idle(none)
		w.minutes(9)
		w.check("before its end", r.ID, models.RunRunning, true)
		w.runs.polled = w.renewer(r.ID, workspaces.RunRenewal{Worked: true})
		w.minutes(1)
		w.check("kept", r.ID, models.RunRunning, false)
	})
}

// A lease that is renewed in the last moment is renewed, although the reconciler has read
// that it is over.
func TestLeaseIsRenewedInTheLastMoment(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		first := w.ticks(w.start("sleep 600").ID, models.RunRunning) // which is looked at before the other one
		r := w.ticks(w.leased(0, models.LaunchParameters{}).ID, models.RunRunning)
		w.clock.Advance(3601 * time.Second)
		w.runs.polled = w.renewer(r.ID, workspaces.RunRenewal{})
		w.minutes(1)
		w.check("the first one", first.ID, models.RunRunning, false)
		w.check("renewed", r.ID, models.RunRunning, false)
		w.runs.polled = nil
		w.clock.Advance(3601 * time.Second)
		w.minutes(1)
		w.check("not renewed", r.ID, models.RunStopping, false)
	})
}

// A lease that is renewed is renewed, whatever the clock of the server that writes it down.
func TestLeaseIsRenewedByAnotherClock(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		r := w.ticks(w.leased(0, models.LaunchParameters{}).ID, models.RunRunning)
		w.clock.Advance(-2 * time.Hour)
		if _, err := w.RenewRun(w.ctx, w.actor, r.ID, workspaces.RunRenewal{}); err != nil {
			w.Fatal(err)
		}
		w.clock.Advance(2 * time.Hour)
		w.minutes(1)
		w.check("renewed two hours ago by that clock", r.ID, models.RunRunning, false)
	})
}

// A server that was away has not seen that a run is idle: it looks twice before it ends it,
// so that a kernel that could not tell its work has the time to do so.
func TestRestartDoesNotEndARunAsIdle(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		r := w.idle(none)
		w.minutes(9)
		w.check("before the restart", r.ID, models.RunRunning, true)
		w.restartWithRuns()
		w.minutes(1)
		w.check("after the restart", r.ID, models.RunRunning, true)
		w.minutes(1)
		w.check("seen again", r.ID, models.RunStopping, true)
	})
}
