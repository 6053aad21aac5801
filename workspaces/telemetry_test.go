package workspaces_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/workspaces"
	"weir/workspaces/runtime"
)

// simulated checks how much of their simulated GPUs holders of a kind use, in percent: nil if that is
// not known.
func (b *world) simulated(t *testing.T, kind models.HolderKind, want *int64) {
	t.Helper()
	view, err := b.pool.View(b.ctx, b.root)
	if err != nil || len(view.Providers) != 1 {
		t.Fatal(len(view.Providers), err)
	}
	load, err := b.store.Read(b.ctx).BusyCoresAt(view.Providers[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range view.Providers[0].Devices {
		for _, s := range d.Shares {
			if got := s.Utilisation; s.Kind == kind && ((got == nil) != (want == nil) || got != nil && (*got != *want || load[d.ID] != *want)) {
				t.Errorf("the %s uses %v, and the GPU shows %v; want %v", kind, got, load, want)
			}
		}
	}
}

// How much a run uses of a simulated GPU follows the CPU time of its processes.
func TestSimulatedUtilisationOfRuns(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		w.gpus(w.T, 1)
		r, err := w.StartRun(w.ctx, w.actor, workspaces.RunInput{ProjectID: w.project.ID, Command: []string{"sleep", "600"}, Request: gpu(1, 40)})
		if err != nil {
			w.Fatal(err)
		}
		used, more := time.Duration(0), time.Duration(0)
		w.runs.polled = func(s *runtime.RunStatus) { used += more; s.CPU = used }
		w.ticks(r.ID, models.RunRunning)
		w.minutes(3)
		w.simulated(w.T, models.HolderRun, nil) // where CPU time is not counted
		for _, c := range []struct {
			more    time.Duration // in a minute
			percent int64
		}{{30 * time.Second, 20}, {0, 0}, {4 * time.Minute, 40}} {
			more = c.more
			w.minutes(1)
			w.simulated(w.T, models.HolderRun, &c.percent)
		}
		w.clock.Advance(2 * time.Minute) // in which nobody looks
		w.simulated(w.T, models.HolderRun, nil)
	})
}

// A deployment uses its simulated GPU while it computes requests, and not while it waits for them.
func TestSimulatedUtilisationOfDeployments(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		w.clock.Advance(time.Minute)
		w.set(func(p *partProcess) { p.cpu = time.Second })
		w.get()
		for _, percent := range []int64{0, 10, 0} {
			w.clock.Advance(time.Minute)
			w.set(func(p *partProcess) { p.cpu += time.Duration(percent) * time.Minute })
			w.get()
			w.simulated(t, models.HolderDeployment, &percent)
		}
	})
}
