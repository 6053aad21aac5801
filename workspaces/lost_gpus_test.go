package workspaces_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/pool/providers"
	"weir/workspaces"
	"weir/workspaces/runtime"
)

// moveAfter is when deployments are moved in tests.
const moveAfter = 5 * time.Minute

// responds lets the machine with some GPUs respond, and all others be lost.
func (w *deploymentWorld) responds(machine string, gpus ...string) {
	w.Helper()
	var inventory devices
	for i, uuid := range gpus {
		inventory = append(inventory, providers.DeviceReport{UUID: uuid, Index: i, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 80_000, Simulated: true})
	}
	w.clock.Advance(30 * time.Second)
	if err := w.machines.Enlist(w.ctx, providers.Host{Name: machine, Digest: providers.MachineDigest(machine)}, inventory); err != nil {
		w.Fatal(err)
	}
	if err := w.machines.Sweep(w.ctx); err != nil {
		w.Fatal(err)
	}
	w.get()
}

// loses lets the machine of the deployment be lost, while another one has some GPUs.
func (w *deploymentWorld) loses(gpus ...string) {
	w.Helper()
	w.set(func(p *partProcess) { p.lost, p.silent = true, true })
	w.responds("other", gpus...)
}

// machine is where the deployment has its share.
func (w *deploymentWorld) machine() string {
	w.Helper()
	q := w.store.Read(w.ctx)
	shares, err := q.SharesOf(w.get().HolderID)
	if err != nil || len(shares) != 1 {
		w.Fatal(shares, err)
	}
	d, err := q.Device(shares[0].DeviceID)
	if err != nil {
		w.Fatal(err)
	}
	p, err := q.Provider(d.ProviderID)
	if err != nil {
		w.Fatal(err)
	}
	return p.Name
}

// A deployment whose machine is lost is deployed on another one, from its parts, and has its address
// there. What it had stays its own until its process has certainly ended.
func TestLostMachine(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		first := w.id
		w.loses("GPU-9")
		w.clock.Advance(moveAfter / 2)
		w.get() // the part has been silent for too long
		w.clock.Advance(moveAfter/2 - time.Second)
		if w.get(); len(w.all()) != 1 {
			t.Fatal("it is moved before the time")
		}
		w.clock.Advance(time.Second)
		if w.get(); len(w.all()) != 2 || !w.has("Deployment 2 is this one on other GPUs, because the machine node is lost.") {
			t.Fatalf("it is not moved: %+v", w.get().Events)
		}
		w.id = 2
		w.load()
		v := w.get()
		if v.First() != first || v.Files != "first" || v.Demand.Cores != 10 || w.machine() != "other" ||
			!w.has("This is deployment 1 on other GPUs, because the machine node is lost.") {
			t.Errorf("in its place is %+v", v)
		}
		if w.served.writes != 1 || !slices.Equal(w.served.linked, [][2]int64{{2, first}}) {
			t.Errorf("the parts were written %d times, linked %v", w.served.writes, w.served.linked)
		}
		w.passes()
		w.id = first
		if v := w.get(); v.State != models.DeploymentStopping || v.CurrentID != 2 || w.shares() != 2 {
			t.Errorf("while its process may run, it is %s, with %d shares", v.State, w.shares())
		}
		w.set(func(p *partProcess) { p.ended = &runtime.RunStatus{Ended: true} })
		if w.vacated(first); w.shares() != 1 {
			t.Errorf("when its process has ended, %d shares are in use", w.shares())
		}
		if w.passes(); len(w.all()) != 2 {
			t.Errorf("there are %d deployments", len(w.all()))
		}
	})
}

// So it is where its environment is gone, too: in another one.
func TestLostMachineWithoutTheEnvironment(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		other := w.exchange()
		w.loses("GPU-9")
		w.clock.Advance(moveAfter)
		w.get()
		if w.get(); len(w.all()) != 2 {
			t.Fatalf("it is not moved: %+v", w.get().Events)
		}
		if w.id = 2; w.get().EnvironmentID != other {
			t.Errorf("it is moved to environment %d, not %d", w.get().EnvironmentID, other)
		}
	})
}

// A deployment on a machine that returns in time is not moved, and one whose GPU is missing is.
func TestReturningMachine(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		w.loses("GPU-9")
		w.clock.Advance(moveAfter - time.Minute)
		w.set(func(p *partProcess) { p.lost, p.silent = false, false })
		w.responds("node", "GPU-0", "GPU-9")
		w.clock.Advance(time.Minute)
		if w.get(); len(w.all()) != 1 {
			t.Fatalf("it is moved: %+v", w.get().Events)
		}
		w.responds("node", "GPU-9")
		w.clock.Advance(moveAfter)
		if w.get(); len(w.all()) != 1 {
			t.Fatalf("it is moved although it answers: %+v", w.get().Events)
		}
		w.set(func(p *partProcess) { p.lost, p.silent = true, true })
		w.poll(t, "it is moved", func() bool { w.passes(); return len(w.all()) == 2 })
		if !w.has("because a GPU of the machine node is missing or has an error.") {
			t.Errorf("it is not moved: %+v", w.get().Events)
		}
	})
}

// A part on a GPU that has failed, and is still there, is not started again on it, which would fail the
// deployment: that is moved.
func TestBrokenGPU(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		broken := devices{{UUID: "GPU-0", Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 80_000, Simulated: true, Trouble: "fell off the bus"},
			{UUID: "GPU-9", Index: 1, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 80_000, Simulated: true}}
		if err := w.machines.Enlist(w.ctx, providers.Host{Name: "node", Digest: providers.MachineDigest("node")}, broken); err != nil {
			t.Fatal(err)
		}
		w.get()
		w.clock.Advance(moveAfter)
		if w.get(); len(w.all()) != 1 {
			t.Fatal("it is moved although it answers")
		}
		w.set(func(p *partProcess) { p.ended = &runtime.RunStatus{Ended: true, ExitCode: 70} })
		w.poll(t, "it is moved", func() bool { w.passes(); return len(w.all()) == 2 })
		w.id = 1
		if p := w.get().Parts[0]; p.State != models.PartWaiting || p.Restarts != 1 || !w.has("because a GPU of the machine node is missing or has an error.") {
			t.Errorf("%+v: %+v", p, w.get().Events)
		}
		if w.id = 2; w.get().State != models.DeploymentDeploying {
			t.Errorf("%+v", w.get())
		}
	})
}

// A deployment for which no other GPU is available waits for its machine. When that has left the cluster
// with its process, the next request deploys it on another one.
func TestLostMachineWithoutOthers(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		w.loses()
		w.clock.Advance(moveAfter)
		w.passes()
		if v := w.get(); v.State != models.DeploymentServing || len(w.all()) != 1 || w.shares() != 1 {
			t.Fatalf("it is %s, the last of %d, with %d shares", v.State, len(w.all()), w.shares())
		}
		const cannot = "It waits to be moved to other GPUs, because the machine node is lost: "
		n := 0
		for _, e := range w.get().Events {
			if len(e.Message.String()) > len(cannot) && e.Message.String()[:len(cannot)] == cannot {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("it says %d times that it cannot be moved: %+v", n, w.get().Events)
		}
		w.set(func(p *partProcess) { p.ended = &runtime.RunStatus{Ended: true} })
		w.poll(t, "it is idle", func() bool { w.passes(); return w.get().State == models.DeploymentIdle && w.shares() == 0 })
		if w.parts.starts != 1 {
			t.Errorf("%d processes were started", w.parts.starts)
		}
		w.responds("other", "GPU-9")
		opened := w.request()
		w.load()
		if err := <-opened; err != nil {
			t.Error(err)
		}
		if v := w.get(); w.machine() != "other" || w.shares() != 1 || w.served.writes != 1 || v.Demand.Cores != 10 {
			t.Errorf("it is deployed with %+v", v)
		}
	})
}

// What cannot be moved, for an unforeseen reason, keeps no other deployment from being loaded.
func TestFailedMove(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		w.loses("GPU-9")
		w.passes()
		w.restartWith(func(c *workspaces.ReconcilerConfig) {
			c.Parts, c.Served, c.MoveAfter = w.parts, w.served, 0
			c.MoveDeployment = func(context.Context, models.Deployment, models.Text) error { return errors.New("broken") }
		})
		w.poll(t, "a part is stopped", func() bool { w.passes(); return w.get().Parts[0].State == models.PartLoading })
		w.deploy()
		w.poll(t, "the part of another one is loaded", func() bool {
			w.clock.Advance(time.Minute) // so that each step tries to move the first one
			return w.get().Parts[0].State == models.PartLoading
		})
	})
}

// While a deployment is not to be moved yet, a part that ends is started again: only the agent of its
// machine may be gone.
func TestPartOfLostMachine(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		w.loses("GPU-9")
		w.set(func(p *partProcess) { p.ended = &runtime.RunStatus{Ended: true} })
		w.poll(t, "the part is started again", func() bool {
			w.clock.Advance(time.Second) // it pauses before
			w.get()
			return w.parts.starts == 2
		})
		w.load()
		w.clock.Advance(moveAfter)
		if w.passes(); len(w.all()) != 1 {
			t.Errorf("it is moved although it answers: %+v", w.get().Events)
		}
	})
}

// A move that fails leaves the deployment with what it knows of its model's files: those that cannot be
// served are not tried again.
func TestFailedMoveKeepsTriedFiles(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		first := w.id
		w.served.change("second", nil)
		update := w.updated()
		w.fails(update)
		w.vacated(update)
		w.id = first
		w.loses("GPU-9")
		w.poll(t, "it is moved", func() bool { w.passes(); return len(w.all()) == 3 })
		move := w.all()[0].ID
		w.fails(move)
		w.vacated(move)
		w.id = first
		if v := w.get(); v.State != models.DeploymentServing || v.TriedFiles != "second" {
			t.Errorf("it is %s, and has tried %q", v.State, v.TriedFiles)
		}
	})
}

// A deployment that loses its machine while it is loaded becomes idle when its process has ended, and a
// request deploys it on another machine.
func TestLostMachineWhileLoading(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.deployWith(workspaces.DeployInput{Cores: 10, IdleMinutes: 60})
		w.until(models.PartLoading)
		w.loses("GPU-9")
		w.clock.Advance(moveAfter)
		w.passes()
		w.clock.Advance(2 * moveAfter) // it makes no progress, and is stopped
		if w.passes(); w.get().State != models.DeploymentDeploying || w.shares() != 1 {
			t.Fatalf("while its process may run, it is %s with %d shares", w.get().State, w.shares())
		}
		w.set(func(p *partProcess) { p.ended = &runtime.RunStatus{Ended: true} })
		w.poll(t, "it is idle", func() bool { w.passes(); return w.get().State == models.DeploymentIdle && w.shares() == 0 })
		if !w.has("It is idle until the next request, because the machine node is lost.") || w.parts.starts != 1 {
			t.Errorf("%d processes: %+v", w.parts.starts, w.get().Events)
		}
		opened := w.request()
		w.load()
		if err := <-opened; err != nil || w.machine() != "other" || w.served.writes != 1 {
			t.Errorf("on %s, written %d times: %v", w.machine(), w.served.writes, err)
		}
	})
}

// An update whose deployment was stopped for it, and that loses its machine, does not end both: it becomes
// idle, and can still be replaced by the version before it.
func TestLostMachineOfRecreatedUpdate(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveWhole(models.UpdateRecreate)
		first := w.id
		w.served.change("second", nil)
		w.id = w.updated()
		w.until(models.PartLoading)
		w.loses("GPU-9")
		w.clock.Advance(moveAfter)
		w.passes()
		w.clock.Advance(2 * moveAfter)
		w.passes()
		w.set(func(p *partProcess) { p.ended = &runtime.RunStatus{Ended: true} })
		w.poll(t, "it is idle", func() bool { w.passes(); return w.get().State == models.DeploymentIdle && w.shares() == 0 })
		if v := w.get(); v.FallbackID == nil || *v.FallbackID != first {
			t.Errorf("it forgets the version before it: %+v", v.FallbackID)
		}
		opened := w.request()
		w.load()
		if err := <-opened; err != nil || w.machine() != "other" || w.get().Files != "second" {
			t.Errorf("on %s: %v", w.machine(), err)
		}
	})
}

// A deployment whose replacement loses its machine, too, is moved once more.
func TestLostMachineOfReplacement(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		first := w.id
		w.loses("GPU-9")
		w.poll(t, "it is moved", func() bool { w.passes(); return len(w.all()) == 2 })
		w.id = 2
		w.until(models.PartLoading)
		w.set(func(p *partProcess) { p.lost, p.silent = true, true })
		w.responds("third", "GPU-10")
		w.clock.Advance(3 * moveAfter)
		w.poll(t, "it has failed", func() bool { w.passes(); return w.get().Failed })
		if v := w.get(); v.State != models.DeploymentStopping || v.Reason.String() != "The deployment failed: the machine other is lost, where its parts were loaded" {
			t.Errorf("%s: %s", v.State, v.Reason)
		}
		w.id = first
		w.poll(t, "it is moved again", func() bool { w.passes(); w.responds("third", "GPU-10"); return len(w.all()) == 3 })
		w.id = 3
		if w.load(); w.machine() != "third" {
			t.Errorf("it is on %s", w.machine())
		}
		w.id = first
		if v := w.get(); v.CurrentID != 3 || v.State != models.DeploymentStopping {
			t.Errorf("the first one is %s, replaced by %d", v.State, v.CurrentID)
		}
	})
}

// What is being updated is not moved besides: its update is deployed on other GPUs anyway.
func TestLostMachineDuringUpdate(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		w.loses("GPU-9")
		w.served.change("second", nil)
		if _, err := w.UpdateDeployment(w.ctx, w.actor, w.id, ""); err != nil {
			t.Fatal(err)
		}
		w.passes()
		w.clock.Advance(moveAfter)
		w.passes()
		if len(w.all()) != 2 {
			t.Errorf("there are %d deployments", len(w.all()))
		}
	})
}
