package workspaces_test

import (
	"sync"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/workspaces"
)

// all lists the deployments, newest first.
func (w *deploymentWorld) all() []workspaces.DeploymentSummary {
	w.Helper()
	list, err := w.ListDeployments(w.ctx, w.actor, store.DeploymentFilter{}, store.Page{Limit: 100})
	if err != nil {
		w.Fatal(err)
	}
	return list
}

// passes lets the time pass after which changed files are deployed.
func (w *deploymentWorld) passes() {
	w.Helper()
	for range 9 {
		w.clock.Advance(11 * time.Second)
		w.get()
	}
}

// updated waits for the update of the deployment, and returns its id.
func (w *deploymentWorld) updated() int64 {
	w.Helper()
	n := len(w.all())
	w.poll(w.T, "an update is deployed", func() bool {
		w.clock.Advance(11 * time.Second)
		w.get()
		return len(w.all()) > n
	})
	return w.all()[0].ID
}

// The update of a model that has changed takes the place of the deployment when it serves, and
// not before: requests that are computed then are finished, and the address stays.
func TestUpdateTakesThePlace(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		first := w.id
		w.passes()
		if n := len(w.all()); n != 1 {
			t.Fatalf("without a change there are %d deployments", n)
		}
		result := make(chan error, 1)
		go func() {
			ids, _, _, err := w.complete(workspaces.CompletionInput{Prompt: "a", MaxTokens: 1})
			if len(ids) != 1 {
				t.Errorf("%v was generated", ids)
			}
			result <- err
		}()
		<-w.parts.computing
		w.served.change("second", nil)
		second := w.updated()
		if state := w.get().State; state != models.DeploymentServing {
			t.Errorf("meanwhile the deployment is %s", state)
		}
		w.id = second
		w.load()
		if v := w.get(); v.First() != first || v.Request.Cores != 10 || v.UserID != w.actor.User.ID {
			t.Errorf("the update is %+v", v)
		}
		w.id = first
		if v := w.get(); v.State != models.DeploymentStopping || v.Reason.String() != "Replaced by deployment 2." {
			t.Errorf("the deployment is %s: %s", v.State, v.Reason)
		}
		c, err := w.Complete(w.ctx, w.actor, first, workspaces.CompletionInput{Prompt: "a"})
		if err != nil || c.Deployment.ID != second {
			t.Fatalf("the address leads to %+v: %v", c, err)
		}
		c.Close()
		w.parts.compute <- struct{}{}
		if err := <-result; err != nil {
			t.Errorf("what was computed: %v", err)
		}
		w.poll(t, "it is stopped", func() bool { return w.get().State == models.DeploymentStopped })
		if v := w.get(); v.CurrentID != second {
			t.Errorf("its place has deployment %d", v.CurrentID)
		}
		if d, err := w.StopDeployment(w.ctx, w.actor, first); err != nil || d.ID != second {
			t.Errorf("by its first ID, deployment %d was stopped: %v", d.ID, err)
		}
	})
}

// While files still change, nothing is deployed of them.
func TestUpdateWaitsForTheLastFile(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		for _, files := range []string{"one of three", "two of three"} {
			w.served.change(files, nil)
			for range 5 {
				w.clock.Advance(11 * time.Second)
				w.get()
			}
		}
		if n := len(w.all()); n != 1 {
			t.Fatalf("%d deployments", n)
		}
		w.served.change("three of three", nil)
		w.id = w.updated()
		if v := w.get(); v.Files != "three of three" {
			t.Errorf("%s was deployed", v.Files)
		}
	})
}

// A model that cannot be served, or whose update fails, is served as before, and tried again
// when it changes again.
func TestUpdateThatFails(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serve()
		w.served.change("truncated", models.Conflict("The file is truncated."))
		w.passes()
		if !w.has("is not deployed. This deployment goes on: The file is truncated.") || len(w.all()) != 1 {
			t.Errorf("%+v", w.get().Events)
		}
		w.served.mu.Lock()
		w.served.failed = models.Conflict("It cannot be split.")
		w.served.mu.Unlock()
		w.served.change("second", nil)
		w.updated()
		w.poll(t, "the update fails", func() bool { return w.has("Its update, deployment 2, has ended. This deployment goes on: ") })
		w.passes()
		if n := len(w.all()); n != 2 || w.get().State != models.DeploymentServing {
			t.Errorf("%d deployments, the first is %s", n, w.get().State)
		}
		w.served.mu.Lock()
		w.served.failed = nil
		w.served.mu.Unlock()
		w.served.change("third", nil)
		w.id = w.updated()
		w.load()
	})
}

// An update whose shares are not available waits, and says so once.
func TestUpdateWaits(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.deployWith(workspaces.DeployInput{Cores: 60})
		w.load()
		w.served.change("second", nil)
		for range 5 {
			w.passes()
		}
		waiting := 0
		for _, e := range w.get().Events {
			if e.Message.Format == "The model has changed. The update waits: %s" {
				waiting++
			}
		}
		if waiting != 1 || len(w.all()) != 1 || w.get().State != models.DeploymentServing {
			t.Errorf("it was said %d times: %+v", waiting, w.get().Events)
		}
	})
}

// Where updates are manual, changed files wait for a request.
func TestManualUpdate(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.deployWith(workspaces.DeployInput{Cores: 10, ManualUpdates: true})
		want(t, second(w.UpdateDeployment(w.ctx, w.actor, w.id, "")), models.KindConflict, "Only one that serves can be updated")
		w.load()
		want(t, second(w.UpdateDeployment(w.ctx, w.actor, w.id, "")), models.KindConflict, "have not changed")
		w.served.change("second", nil)
		w.passes()
		if n := len(w.all()); n != 1 {
			t.Errorf("%d deployments without a request", n)
		}
		d, err := w.UpdateDeployment(w.ctx, w.actor, w.id, "")
		if err != nil || d.First() != w.id || !d.ManualUpdates {
			t.Fatalf("%+v: %v", d, err)
		}
		want(t, second(w.UpdateDeployment(w.ctx, w.actor, w.id, "")), models.KindConflict, "deployment 2, is already being deployed")
		if _, err := w.StopDeployment(w.ctx, w.actor, d.ID); err != nil {
			t.Fatal(err)
		}
		if !w.has("Its update, deployment 2, has ended.") {
			t.Errorf("%+v", w.get().Events)
		}
		third, err := w.UpdateDeployment(w.ctx, w.actor, w.id, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.StopDeployment(w.ctx, w.actor, w.id); err != nil {
			t.Fatal(err)
		}
		w.id = third.ID
		w.poll(t, "the update is stopped with its deployment", func() bool { return w.get().State == models.DeploymentStopped })
	})
}

// A directory that hangs delays the updates of its own deployments alone.
func TestModelThatHangs(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.served.hung = make(chan struct{})
		release := sync.OnceFunc(func() { close(w.served.hung) })
		defer release()
		w.deploy()
		w.deploy()
		step := func() models.Deployment {
			_ = w.TickDeploymentsOnly(w.ctx) // its errors are seen in the deployment
			d, err := w.store.Read(w.ctx).Deployment(store.AllProjects, w.id)
			if err != nil {
				t.Fatal(err)
			}
			return d.Deployment
		}
		for w.id = 1; w.id <= 2; w.id++ {
			w.poll(t, "the part loads", func() bool { step(); return w.process() != nil })
			w.set(func(p *partProcess) { p.status = loadedStatus })
			w.poll(t, "the deployment serves", func() bool { return step().State == models.DeploymentServing })
		}
		w.id = 2
		w.served.change("second", nil)
		w.poll(t, "the other deployment is updated", func() bool {
			w.clock.Advance(11 * time.Second)
			step()
			return len(w.all()) == 3
		})
		if d := w.all()[0]; d.First() != 2 {
			t.Errorf("deployment %d is updated", d.First())
		}
		release()
		_ = w.TickDeployments(w.ctx)
	})
}
