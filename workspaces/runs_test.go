package workspaces_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/workspaces"
	"weir/workspaces/local"
	"weir/workspaces/runtime"
)

// hookedRuns are real runs that can be made to fail at a given step.
type hookedRuns struct {
	*local.Runs
	refuse   error                    // of Start
	launched error                    // of Start, when the command runs
	fixed    error                    // of Refresh
	polled   func(*runtime.RunStatus) // changes what Poll returns
	states   map[int64]runtime.State  // of the starts
}

func (r *hookedRuns) Start(ctx context.Context, run int64, spec runtime.Spec, command []string) (runtime.State, error) {
	if r.refuse != nil {
		return nil, r.refuse
	}
	state, err := r.Runs.Start(ctx, run, spec, command)
	r.states[run] = state
	return state, errors.Join(err, r.launched)
}

func (r *hookedRuns) Poll(ctx context.Context, state runtime.State) (runtime.RunStatus, error) {
	s, err := r.Runs.Poll(ctx, state)
	if r.polled != nil {
		r.polled(&s)
	}
	return s, err
}

func (r *hookedRuns) Refresh(ctx context.Context, state runtime.State, mounts []models.Mount) error {
	if r.fixed != nil {
		return r.fixed
	}
	return r.Runs.Refresh(ctx, state, mounts)
}

// runsWorld is a world in which the member can run commands.
type runsWorld struct {
	*world
	*testing.T
	runs *hookedRuns
	dir  string // of what runs leave
}

func newRunsWorld(t *testing.T, b *world) *runsWorld {
	t.Helper()
	w := &runsWorld{world: b, T: t, dir: t.TempDir()}
	real, err := local.NewRuns(local.Config{Dir: w.dir, SandboxUID: 64321, SandboxGID: 64321, Clock: b.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	w.runs = &hookedRuns{Runs: real, states: map[int64]runtime.State{}}
	b.Service.Runs = w.runs
	w.restartWithRuns()
	t.Cleanup(func() {
		for _, state := range w.runs.states {
			b.poll(t, "the run is gone", func() bool {
				b.clock.Advance(10 * time.Second)
				s, err := real.Poll(context.Background(), state)
				return err != nil || s.Ended || real.Stop(context.Background(), state) != nil
			})
		}
		real.Close()
	})
	return w
}

// restartWithRuns replaces the reconciler as a new process would.
func (w *runsWorld) restartWithRuns() {
	w.restartWith(func(c *workspaces.ReconcilerConfig) {
		c.Runs, c.RunEnv = w.runs, func(models.Run) map[string]string { return map[string]string{} }
	})
}

// start starts a run of a script.
func (w *runsWorld) start(script string) models.Run {
	w.Helper()
	r, err := w.StartRun(w.ctx, w.actor, workspaces.RunInput{ProjectID: w.project.ID, Command: []string{"/bin/sh", "-c", script}})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *runsWorld) run(id int64) models.Run {
	w.Helper()
	r, err := w.store.Read(w.ctx).Run(store.AllProjects, id)
	if err != nil {
		w.Fatal(err)
	}
	return r.Run
}

// ticks steps all runs until one is in the state.
func (w *runsWorld) ticks(id int64, state models.RunState) models.Run {
	w.Helper()
	w.poll(w.T, "the run is "+string(state), func() bool {
		_ = w.TickRuns(w.ctx) // a test asks for the state
		return w.run(id).State == state
	})
	return w.run(id)
}

func (w *runsWorld) history(id int64) (lines []string) {
	w.Helper()
	v, err := w.ViewRun(w.ctx, w.actor, id)
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range v.Events {
		lines = append(lines, e.Message.String())
	}
	return lines
}

func eachRuns(t *testing.T, test func(w *runsWorld)) {
	each(t, func(t *testing.T, b *world) { test(newRunsWorld(t, b)) })
}

// The history of a run says when it was requested, started and ended, and by whom.
func TestHistoryOfARun(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		r := w.ticks(w.start("exit 3").ID, models.RunEnded)
		if got := w.history(r.ID); len(got) != 3 || got[1] != "The command was started." || got[2] != "Ended with exit code 3. Its shares were released." {
			w.Errorf("the history is %q", got)
		}
		long := w.ticks(w.start("sleep 600").ID, models.RunRunning)
		w.poll(w.T, "the command runs", func() bool { return w.SignalRun(w.ctx, w.actor, long.ID, "USR1") == nil })
		if _, err := w.StopRun(w.ctx, w.actor, long.ID); err != nil {
			w.Error(err)
		}
		got := w.history(long.ID)
		if by := w.actor.User.Name; !slices.Contains(got, "Signal USR1 sent by "+by+".") || !slices.Contains(got, "Stopped by "+by+".") {
			w.Errorf("the history is %q", got)
		}
	})
}

// A command begins in the directory of its run, which only its user sees.
func TestDirectoryOfARun(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		dir := sharedFiles{w.T, w.world}.in("")
		in := workspaces.RunInput{ProjectID: w.project.ID, Command: []string{"pwd"}, Directory: dir + "/./"}
		r, err := w.StartRun(w.ctx, w.actor, in)
		if err != nil {
			w.Fatal(err)
		}
		w.ticks(r.ID, models.RunEnded)
		if l, err := w.ReadRunLog(w.ctx, w.actor, r.ID, 0, 0); err != nil || string(l.Data) != dir+"\n" {
			w.Errorf("it printed %q, %v", l.Data, err)
		}
		for _, viewer := range []struct {
			policies.Actor
			want string
		}{{w.actor, dir}, {w.root, ""}} {
			if v, err := w.ViewRun(w.ctx, viewer.Actor, r.ID); err != nil || v.Directory != viewer.want {
				w.Errorf("%s sees the directory %q, %v", viewer.User.Name, v.Directory, err)
			}
		}
		in.Directory = "work"
		want(w.T, second(w.StartRun(w.ctx, w.actor, in)), models.KindInvalid, "directory", "must be an absolute path")
	})
}

// What may be temporary does not end a run, unless it lasts.
func TestStartOfARunIsRepeated(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		root := w.dirs.Root()
		if err := os.Rename(root, root+".gone"); err != nil { // the storage is not mounted
			w.Fatal(err)
		}
		if err := os.WriteFile(root, nil, 0o600); err != nil {
			w.Fatal(err)
		}
		r := w.start("exit 0")
		if err := w.TickRuns(w.ctx); err == nil || w.run(r.ID).State != models.RunStarting {
			w.Fatalf("it is %s (%s), %v", w.run(r.ID).State, w.run(r.ID).Reason, err)
		}
		if err := errors.Join(os.Remove(root), os.Rename(root+".gone", root)); err != nil {
			w.Fatal(err)
		}
		w.ticks(r.ID, models.RunEnded)

		w.runs.refuse = models.Unavailable(nil, "Try later.")
		r = w.start("exit 0")
		if err := w.TickRuns(w.ctx); err == nil || w.run(r.ID).State != models.RunStarting {
			w.Fatalf("it is %s, %v", w.run(r.ID).State, err)
		}
		w.clock.Advance(runtime.StageLaunching.Timeout() + time.Second)
		if r = w.ticks(r.ID, models.RunEnded); r.Reason.String() != "The run failed: Try later." {
			w.Errorf("it ended as %q", r.Reason)
		}
	})
}

// A run that was stopped before the server knew that it had started, and that has ended by
// itself, has its exit code and its log.
func TestRunThatEndedUnseen(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		w.runs.launched = errors.New("the server was killed here")
		r := w.start("echo done; exit 3")
		_ = w.TickRuns(w.ctx) // that error
		w.poll(w.T, "it has ended", func() bool { s, err := w.runs.Poll(w.ctx, w.runs.states[r.ID]); return err == nil && s.Ended })
		r = w.ticks(r.ID, models.RunEnded)
		if r.ExitCode == nil || *r.ExitCode != 3 {
			w.Errorf("the exit code is %v: %s", r.ExitCode, r.Reason)
		}
		if l, err := w.ReadRunLog(w.ctx, w.actor, r.ID, 0, 0); err != nil || string(l.Data) != "done\n" {
			w.Errorf("the log is %q, %v", l.Data, err)
		}
	})
}

// Nothing stays on the disk of a run that is deleted, however that was interrupted.
func TestLeftoversOfRuns(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		r := w.ticks(w.start("exit 0").ID, models.RunEnded)
		storetest.InTx(w, w.store, func(q *store.Queries) error { return q.DeleteRun(r) })
		if err := os.Mkdir(filepath.Join(w.dir, "ws-999-1"), 0o700); err != nil { // a start that was interrupted
			w.Fatal(err)
		}
		kept := w.ticks(w.start("echo kept").ID, models.RunEnded)
		w.poll(w.T, "the leftovers are removed", func() bool {
			w.clock.Advance(time.Minute)
			_ = w.TickRuns(w.ctx) // the directories tell
			left, err := os.ReadDir(w.dir)
			return err == nil && len(left) == 1
		})
		if l, err := w.ReadRunLog(w.ctx, w.actor, kept.ID, 0, 0); err != nil || string(l.Data) != "kept\n" {
			w.Errorf("the log is %q, %v", l.Data, err)
		}
	})
}

// Runs that ended in the queue are bounded, too.
func TestEndedRunsAreBounded(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		newest := w.start("exit 0")
		if _, err := w.StopRun(w.ctx, w.actor, newest.ID); err != nil {
			w.Fatal(err)
		}
		storetest.InTx(w, w.store, func(q *store.Queries) error {
			for range 205 {
				r := newest
				r.ID, r.State = 0, models.RunEnded
				if err := q.CreateRun(&r, models.Text{}); err != nil {
					return err
				}
			}
			return nil
		})
		w.clock.Advance(time.Minute)
		if err := w.TickRuns(w.ctx); err != nil {
			w.Fatal(err)
		}
		list, err := w.store.Read(w.ctx).RunStates()
		if err != nil || len(list) > 201 {
			w.Errorf("%d runs, %v", len(list), err)
		}
	})
}

// The time limit counts how long the command has run, whatever the clock is set to.
func TestTimeLimitOfARun(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		in := workspaces.RunInput{ProjectID: w.project.ID, Command: []string{"sleep", "600"}, TimeLimitSeconds: 1800}
		r, err := w.StartRun(w.ctx, w.actor, in)
		if err != nil {
			w.Fatal(err)
		}
		w.ticks(r.ID, models.RunRunning)
		w.clock.Advance(24 * time.Hour) // somebody has set the clock
		if err := w.TickRuns(w.ctx); err != nil || w.run(r.ID).State != models.RunRunning {
			w.Errorf("it is %s, %v", w.run(r.ID).State, err)
		}
		if s, err := w.runs.Poll(w.ctx, w.runs.states[r.ID]); err != nil || s.Ran < 0 || s.Ran > 30*time.Minute {
			w.Errorf("it has run for %s, %v", s.Ran, err)
		}
		w.runs.polled = func(s *runtime.RunStatus) { s.Ran += 30 * time.Minute }
		if got := w.ticks(r.ID, models.RunStopping); got.Reason.String() != "The time limit of 30m0s was reached." {
			w.Errorf("it stops as %q", got.Reason)
		}
	})
}

// A run that has ended while no server looked is charged until its end, as far as another clock says it.
func TestRunEndsUnseen(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		w.gpus(w.T, 1)
		for said, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, time.Hour: 10 * time.Minute, -time.Hour: 0} {
			w.runs.polled = nil
			in := workspaces.RunInput{ProjectID: w.project.ID, Command: []string{"sleep", "600"}, Request: gpu(1, 100)}
			r, err := w.StartRun(w.ctx, w.actor, in)
			if err != nil {
				w.Fatal(err)
			}
			began := *w.ticks(r.ID, models.RunRunning).StartedAt
			shares, err := w.store.Read(w.ctx).SharesOf(r.HolderID)
			if err != nil || len(shares) != 1 {
				w.Fatalf("%d shares, %v", len(shares), err)
			}
			w.clock.Advance(began.Add(10 * time.Minute).Sub(w.clock.Now()))
			w.runs.polled = func(s *runtime.RunStatus) { s.Ended, s.ExitCode, s.EndedAt, s.CPU = true, 0, began.Add(said), said }
			r = w.ticks(r.ID, models.RunEnded)
			if !r.EndedAt.Equal(began.Add(want)) {
				w.Errorf("said to have ended after %s, it has ended after %s", said, r.EndedAt.Sub(began))
			}
			if known := r.CPUTimeMs != nil; known != (said > 0) || known && *r.CPUTimeMs != said.Milliseconds() {
				w.Errorf("said to have used %s of CPU time, it has used %v ms", said, r.CPUTimeMs)
			}
			history, err := w.store.Read(w.ctx).ShareHistory(shares[0].DeviceID, 1)
			if err != nil || history[0].Until == nil || !history[0].Until.Equal(began.Add(want)) {
				w.Errorf("said to have ended after %s, its share: %+v, %v", said, history, err)
			}
		}
	})
}

// A run ends before a reservation that begins after its time limit, also if it was slow to start.
func TestTimeLimitBesideAReservation(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		w.reserved(w.T, 60)
		in := workspaces.RunInput{ProjectID: w.project.ID, Command: []string{"sleep", "600"}, Request: gpu(1, 100), TimeLimitSeconds: 3600,
			WhenInsufficient: workspaces.WhenInsufficientRefuse}
		want(w.T, second(w.StartRun(w.ctx, w.actor, in)), models.KindNoCapacity, "Only 40 of 100 cores")
		in.TimeLimitSeconds = 50 * 60
		if p, err := w.PreviewRun(w.ctx, w.actor, in); err != nil || p.State != models.StateStarting {
			w.Errorf("the preview is %q, %v", p.State, err)
		}
		r, err := w.StartRun(w.ctx, w.actor, in)
		if err != nil {
			w.Fatal(err)
		}
		w.ticks(r.ID, models.RunRunning)
		w.clock.Advance(58 * time.Minute)
		w.Tick(w.ctx)
		if got := w.run(r.ID); got.State != models.RunRunning {
			w.Errorf("it is %s: %s", got.State, got.Reason)
		}
		w.clock.Advance(time.Minute)
		w.Tick(w.ctx)
		if got := w.run(r.ID); got.State != models.RunStopping || got.Reason.String() != "Stopped: its GPU is reserved, and its time is over." {
			w.Errorf("it is %s: %s", got.State, got.Reason)
		}
	})
}

// Where the mounts of a run cannot change, it is stopped when rules give its member less.
func TestWithdrawnAccessStopsARun(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		w.runs.fixed = errors.ErrUnsupported
		f := sharedFiles{w.T, w.world}
		r := w.ticks(w.start("sleep 600").ID, models.RunRunning)
		w.clock.Advance(time.Minute)
		if err := w.TickRuns(w.ctx); err != nil || w.run(r.ID).State != models.RunRunning {
			w.Fatalf("it is %s, %v", w.run(r.ID).State, err)
		}
		f.everyone("", models.AccessRead)
		w.clock.Advance(time.Minute)
		if err := w.TickRuns(w.ctx); err != nil {
			w.Error(err)
		}
		if got := w.run(r.ID); got.State != models.RunStopping || got.Reason.String() != "Stopped: rules now give less access to "+f.in("")+"." {
			w.Errorf("it is %s: %s", got.State, got.Reason)
		}
	})
}

// An environment in which a command has run is kept.
func TestEnvironmentOfARunIsKept(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		r := w.start("exit 0")
		used, err := w.store.Read(w.ctx).EnvironmentUsed(r.EnvironmentID)
		if err != nil || !used {
			w.Errorf("used: %t, %v", used, err)
		}
	})
}

// An environment without a notebook server is the best match of a run, and of no workspace.
func TestEnvironmentWithoutNotebook(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		e := w.environment(w.T, workspaces.EnvironmentInput{Name: "A PyTorch", Command: []string{"/bin/sh"}, NoNotebook: true})
		if r := w.start("exit 0"); r.EnvironmentID != e.ID {
			w.Errorf("the run has the environment %d, best is %d", r.EnvironmentID, e.ID)
		}
		p, err := w.Preview(w.ctx, w.actor, w.ask("", models.LaunchParameters{}))
		if err != nil || p.Environment.ID == e.ID || p.Rejection != nil {
			w.Errorf("a workspace would have the environment %d: %v, %v", p.Environment.ID, p.Rejection, err)
		}
		requested := w.ask("", models.LaunchParameters{})
		requested.EnvironmentID = e.ID
		want(w.T, second(w.Launch(w.ctx, w.actor, requested)), models.KindInvalid, "environment_id", "has no notebook server")
	})
}

// The pages of a run are told when it has printed something, and only then.
func TestOutputOfARunIsTold(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		told := make(chan string, 1000)
		w.store.OnChange(func(topics []string) {
			for _, topic := range topics {
				told <- topic
			}
		})
		r := w.ticks(w.start("echo begun; sleep 600").ID, models.RunRunning)
		output := fmt.Sprintf("run-output:%d", r.ID)
		heard := func() (n int) {
			for len(told) > 0 {
				if <-told == output {
					n++
				}
			}
			return n
		}
		w.poll(w.T, "its output is told", func() bool { return w.TickRuns(w.ctx) != nil || heard() > 0 })
		if err := w.TickRuns(w.ctx); err != nil || heard() != 0 {
			w.Errorf("told again, %v", err)
		}
	})
}
