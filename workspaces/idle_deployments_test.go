package workspaces_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/workspaces"
)

// serveUntilIdle serves a model that becomes idle after ten minutes, and whose shares are not
// available twice.
func (w *deploymentWorld) serveUntilIdle() {
	w.Helper()
	w.deployWith(workspaces.DeployInput{Cores: 60, IdleMinutes: 10})
	w.load()
}

// idle lets the time pass, and waits until the deployment has released its shares.
func (w *deploymentWorld) idle() {
	w.Helper()
	w.quiet()
	w.get()
	w.clock.Advance(10 * time.Minute)
	w.poll(w.T, "the deployment is idle", func() bool { return w.get().State == models.DeploymentIdle && w.shares() == 0 })
}

// quiet waits until the part has seen the end of all requests.
func (w *deploymentWorld) quiet() {
	w.Helper()
	w.poll(w.T, "the part computes nothing", func() bool {
		computing := int64(1)
		w.set(func(p *partProcess) { computing = p.status.Computing })
		return computing == 0
	})
}

// cpuHours is what the project has used of CPU.
func (w *deploymentWorld) cpuHours() float64 {
	w.Helper()
	now := w.clock.Now()
	all, _, err := w.store.Read(w.ctx).UsedBy(w.project.ID, w.actor.User.ID, now.Add(-1000*time.Hour), now)
	if err != nil {
		w.Fatal(err)
	}
	return all.Over(1000 * time.Hour).CPUHours
}

// request sends a request, whose completion is opened when it can be computed.
func (w *deploymentWorld) request() (opened chan error) {
	opened = make(chan error, 1)
	go func() {
		c, err := w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})
		if err == nil {
			c.Close()
		}
		opened <- err
	}()
	return opened
}

// A deployment without requests releases its shares and ends its processes. The next request
// waits until it serves again, at the same address and from the same parts.
func TestIdleDeployment(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveUntilIdle()
		for range 20 { // so that it serves for three hours
			w.quiet()
			w.get()
			w.clock.Advance(9 * time.Minute)
			if err := <-w.request(); err != nil {
				t.Fatal(err)
			}
		}
		w.get()
		w.clock.Advance(10*time.Minute - time.Second)
		if err := <-w.request(); err != nil {
			t.Fatal(err)
		}
		w.quiet()
		w.get()
		w.clock.Advance(10*time.Minute - time.Second)
		if v := w.get(); v.State != models.DeploymentServing {
			t.Errorf("after a request it is %s", v.State)
		}
		w.idle()
		if v := w.get(); v.Demand != (models.Demand{}) || v.Parts[0].State != models.PartEnded || w.process() != nil || !v.CanStop || v.EndedAt != nil {
			t.Errorf("it is idle with %+v", v)
		}
		cpu := w.cpuHours()
		for range 2 {
			w.clock.Advance(100 * time.Hour) // which count for nothing
			if now := w.cpuHours(); now != cpu || cpu == 0 {
				t.Errorf("%v CPU hours were used, and %v are counted while it is idle", cpu, now)
			}
			opened := w.request()
			w.load()
			if err := <-opened; err != nil {
				t.Fatal(err)
			}
			if v := w.get(); v.StartedAt == nil || w.shares() != 1 || v.Demand.Cores != 60 || v.Parts[0].Restarts != 0 || w.served.writes != 1 {
				t.Errorf("it serves again with %d shares, written %d times: %+v", w.shares(), w.served.writes, v)
			}
			w.idle()
			cpu = w.cpuHours()
		}
		if n := len(w.all()); n != 1 {
			t.Errorf("there are %d deployments", n)
		}
	})
}

// exchange lets a new environment take the place of the one that the deployment has.
func (w *deploymentWorld) exchange() (id int64) {
	w.Helper()
	of := w.get().EnvironmentID
	storetest.InTx(w.T, w.store, func(q *store.Queries) error {
		e, err := q.Environment(of)
		if err != nil {
			return err
		}
		e.Unavailable = models.Say("the installation is no longer on this machine")
		return q.UpdateEnvironment(&e)
	})
	return w.environment(w.T, workspaces.EnvironmentInput{Name: "new", Command: []string{"/bin/sleep", "600"}, Versions: map[string]string{"numpy": "2.1"}}).ID
}

// A deployment whose environment is gone is deployed again in another one, unless it was asked for.
func TestIdleDeploymentWithoutItsEnvironment(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveUntilIdle()
		w.idle()
		other := w.exchange()
		opened := w.request()
		w.load()
		if err := <-opened; err != nil || w.get().EnvironmentID != other {
			t.Errorf("it is deployed in environment %d, not %d: %v", w.get().EnvironmentID, other, err)
		}
	})
}

// A request that is computed when a deployment becomes idle is finished, and one that is wrong
// takes no shares. Who sent one that waits can go.
func TestRequestsWhenIdle(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveUntilIdle()
		w.get()
		open, err := w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})
		if err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(11 * time.Minute)
		if v := w.get(); v.State != models.DeploymentServing {
			t.Errorf("while it computes, it is %s", v.State)
		}
		open.Close()
		w.idle()
		_, err = w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a", Logprobs: 21})
		want(t, err, models.KindInvalid, "must be from 0 to 20")
		if v := w.get(); v.State != models.DeploymentIdle {
			t.Errorf("a wrong request makes it %s", v.State)
		}
		ctx, leave := context.WithCancel(w.ctx)
		left := make(chan error, 1)
		go func() {
			_, err := w.Complete(ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})
			left <- err
		}()
		w.until(models.PartLoading)
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		w.load()
	})
}

// Where its shares are not available any more, a request is refused with the reason, and the
// next one is served when they are.
func TestIdleDeploymentWithoutCapacity(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveUntilIdle()
		w.idle()
		idle := w.id
		w.deployWith(workspaces.DeployInput{Cores: 60})
		other := w.id
		w.load()
		w.id = idle
		want(t, <-w.request(), models.KindUnavailable, "This deployment is idle, and cannot be deployed now: ")
		if v := w.get(); v.State != models.DeploymentIdle || v.Demand != (models.Demand{}) {
			t.Errorf("it is %s", v.State)
		}
		if _, err := w.StopDeployment(w.ctx, w.actor, other); err != nil {
			t.Fatal(err)
		}
		w.vacated(other)
		w.id = idle
		opened := w.request()
		w.load()
		if err := <-opened; err != nil {
			t.Error(err)
		}
	})
}

// A deployment does not become idle while its update is being deployed, or its files have changed.
func TestIdleDeploymentIsUpdated(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.deployWith(workspaces.DeployInput{Cores: 10, IdleMinutes: 10})
		w.load()
		first := w.id
		w.get()
		w.clock.Advance(9 * time.Minute)
		w.served.change("second", nil)
		w.get()
		w.clock.Advance(time.Minute - time.Second)
		w.get()
		w.poll(t, "its update is being deployed", func() bool { w.clock.Advance(time.Second); w.get(); return len(w.all()) == 2 })
		w.clock.Advance(20 * time.Minute)
		if v := w.get(); v.State != models.DeploymentServing {
			t.Errorf("beside its update it is %s", v.State)
		}
		w.id = 2
		w.load()
		if v := w.get(); v.Request.IdleMinutes != 10 {
			t.Errorf("the update becomes idle after %d minutes", v.Request.IdleMinutes)
		}
		w.vacated(first)
		w.id = 2
		w.idle()
	})
}

// Stopping a deployment ends the writing of its parts, and its shares go back.
func TestStopWhileWriting(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.served.endless = true
		w.deployWith(workspaces.DeployInput{Cores: 60})
		w.poll(t, "its parts are written", func() bool {
			w.get()
			w.served.mu.Lock()
			defer w.served.mu.Unlock()
			return w.served.writes == 1
		})
		_, err := w.Deploy(w.ctx, w.actor, workspaces.DeployInput{ProjectID: w.project.ID, Path: "/notebook/1/project_model/tiny", Cores: 60})
		want(t, err, models.KindNoCapacity, "Only 40 of 60 cores per GPU are available now. Request fewer cores, or deploy it later.")
		if _, err := w.StopDeployment(w.ctx, w.actor, w.id); err != nil {
			t.Fatal(err)
		}
		w.poll(t, "it is stopped", func() bool { return w.get().State == models.DeploymentStopped })
		if got := b.shares(t); got != 0 {
			t.Errorf("%d cores are in use", got)
		}
	})
}

// An idle deployment can be stopped, and ends with the right of its owner. After a restart of
// the server, the time without requests begins again.
func TestEndOfIdleDeployment(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveUntilIdle()
		w.get()
		w.clock.Advance(9 * time.Minute)
		w.restart()
		w.get()
		w.clock.Advance(9 * time.Minute)
		if v := w.get(); v.State != models.DeploymentServing {
			t.Errorf("after a restart it is %s", v.State)
		}
		w.idle()
		if _, err := w.StopDeployment(w.ctx, w.actor, w.id); err != nil {
			t.Fatal(err)
		}
		w.vacated(w.id)
		want(t, <-w.request(), models.KindUnavailable, "This deployment is stopped.")

		w.serveUntilIdle()
		w.idle()
		u := w.actor.User
		u.Disabled = true
		storetest.InTx(t, w.store, func(q *store.Queries) error { return q.UpdateUser(&u) })
		w.poll(t, "the idle deployment of a disabled account has ended", func() bool {
			w.Tick(w.ctx)
			return w.get().State == models.DeploymentStopped
		})
	})
}
