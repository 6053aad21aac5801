package workspaces_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/workspaces"
)

// serveWhole serves a model with shares that are not available twice.
func (w *deploymentWorld) serveWhole(strategy models.UpdateStrategy) {
	w.Helper()
	w.deployWith(workspaces.DeployInput{Cores: 60, UpdateStrategy: strategy})
	w.load()
}

// vacated waits until a deployment has ended.
func (w *deploymentWorld) vacated(id int64) {
	w.Helper()
	w.id = id
	w.poll(w.T, "the deployment has ended", func() bool { return w.get().State.Ended() })
}

// An update that has no shares beside the deployment takes its shares, and its place: no
// other workspace can take them in between.
func TestUpdateRecreates(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveWhole(models.UpdateRecreate)
		first := w.id
		w.served.change("second", nil)
		w.poll(t, "it is stopped for its update", func() bool { w.passes(); return w.get().Updating || len(w.all()) == 2 })
		w.vacated(first)
		if v := w.get(); v.State != models.DeploymentStopped || v.CurrentID != 2 || !w.has("Deployment 2 is its update.") {
			t.Fatalf("the deployment is %s, in its place is %d: %+v", v.State, v.CurrentID, v.Events)
		}
		w.id = 2
		w.load()
		if v := w.get(); v.Files != "second" || v.First() != first || v.Demand.Cores != 60 || v.UpdateStrategy != models.UpdateRecreate {
			t.Errorf("the update is %+v", v)
		}
		if n := w.shares(); n != 1 {
			t.Errorf("%d shares are in use", n)
		}
	})
}

// Each update can have a strategy of its own. A deployment that stops for its update keeps its
// shares until that has them, and can be stopped without.
func TestRecreateOnRequest(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveWhole(models.UpdateRolling)
		w.served.change("second", nil)
		want(t, second(w.UpdateDeployment(w.ctx, w.actor, w.id, "other")), models.KindInvalid, "must be rolling or recreate")
		if _, err := w.UpdateDeployment(w.ctx, w.actor, w.id, ""); err == nil {
			t.Fatal("beside itself, the update has shares that are not available")
		}
		d, err := w.UpdateDeployment(w.ctx, w.actor, w.id, models.UpdateRecreate)
		if err != nil || d.ID != w.id || !d.Updating || d.State != models.DeploymentStopping {
			t.Fatalf("%+v: %v", d, err)
		}
		want(t, second(w.UpdateDeployment(w.ctx, w.actor, w.id, models.UpdateRecreate)), models.KindConflict, "This deployment is stopping")
		if n := w.shares(); n != 1 {
			t.Errorf("while it stops, %d shares are in use", n)
		}
		want(t, second(w.Complete(w.ctx, w.actor, w.id, workspaces.CompletionInput{Prompt: "a"})), models.KindUnavailable, "This deployment is stopping")
		if _, err := w.StopDeployment(w.ctx, w.actor, w.id); err != nil {
			t.Fatal(err)
		}
		w.vacated(w.id)
		if n := len(w.all()); n != 1 || w.shares() != 0 {
			t.Errorf("%d deployments, %d shares", n, w.shares())
		}
	})
}

// A model that cannot be served does not stop the deployment. One that can be no more when
// the deployment has ended has it deployed again, with the files that it had.
func TestRecreateThatFails(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveWhole(models.UpdateRecreate)
		w.served.change("truncated", models.Conflict("The file is truncated."))
		w.passes()
		if v := w.get(); v.State != models.DeploymentServing || v.Updating {
			t.Fatalf("the deployment is %s: %+v", v.State, v.Events)
		}
		w.served.change("second", nil)
		if _, err := w.UpdateDeployment(w.ctx, w.actor, w.id, ""); err != nil {
			t.Fatal(err)
		}
		w.served.change("third", models.Conflict("The file is truncated."))
		w.poll(t, "it is deployed again", func() bool { return w.has("This deployment is deployed again: The file is truncated.") })
		w.load()
		w.passes()
		if v := w.get(); v.State != models.DeploymentServing || v.Files != "first" || len(w.all()) != 1 || w.shares() != 1 || !v.Reason.Empty() {
			t.Errorf("the deployment is %+v", v)
		}
	})
}

// shares counts the shares that are in use.
func (w *deploymentWorld) shares() int {
	w.Helper()
	shares, err := w.store.Read(w.ctx).OpenSharesAmong(store.AllMachines)
	if err != nil {
		w.Fatal(err)
	}
	return len(shares)
}

// By the first ID, too, a deployment can be stopped while it stops for its update.
func TestStopForUpdateByFirstID(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveWhole(models.UpdateRecreate)
		first := w.id
		update := func(files string) {
			w.served.change(files, nil)
			if _, err := w.UpdateDeployment(w.ctx, w.actor, first, ""); err != nil {
				t.Fatal(err)
			}
		}
		update("second")
		w.poll(t, "the update is deployed", func() bool { w.get(); return len(w.all()) == 2 })
		w.id = 2
		w.load()
		update("third")
		w.id = first
		if v := w.get(); v.CurrentID != 2 {
			t.Errorf("the address leads to deployment %d", v.CurrentID)
		}
		if d, err := w.StopDeployment(w.ctx, w.actor, first); err != nil || d.ID != 2 || d.Updating {
			t.Fatalf("%+v: %v", d, err)
		}
		w.vacated(2)
		if n := len(w.all()); n != 2 || w.shares() != 0 {
			t.Errorf("%d deployments, %d shares", n, w.shares())
		}
	})
}

// Who has left the project while a deployment stops for its update, has neither of them.
func TestRecreateWithoutRight(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveWhole(models.UpdateRecreate)
		w.served.change("second", nil)
		if _, err := w.UpdateDeployment(w.ctx, w.actor, w.id, ""); err != nil {
			t.Fatal(err)
		}
		if err := b.projects.RemoveMember(b.ctx, b.root, b.project.ID, b.member.ID); err != nil {
			t.Fatal(err)
		}
		w.actor = b.root // who still sees it
		starts := w.parts.starts
		w.vacated(w.id)
		if n := len(w.all()); n != 1 || w.shares() != 0 || w.parts.starts != starts {
			t.Errorf("%d deployments, %d shares, %d starts after %d", n, w.shares(), w.parts.starts, starts)
		}
	})
}

// rewrite lets the files of the model change while the parts of the next update are written.
func (w *deploymentWorld) rewrite(files string) {
	w.Helper()
	w.served.mu.Lock()
	w.served.rewritten = files
	w.served.mu.Unlock()
	w.served.change("second", nil)
	if _, err := w.UpdateDeployment(w.ctx, w.actor, w.id, ""); err != nil {
		w.Fatal(err)
	}
	w.poll(w.T, "the update is deployed", func() bool { w.get(); return len(w.all()) == 2 })
	w.id = 2
	w.poll(w.T, "its parts cannot be written", func() bool { return w.has("The deployment waits until its files stay the same.") })
}

// settles lets time pass until something is so.
func (w *deploymentWorld) settles(what string, so func() bool) {
	w.Helper()
	w.poll(w.T, what, func() bool {
		w.clock.Advance(11 * time.Second)
		w.get()
		return so()
	})
}

// A model that changes while the parts of its update are written is deployed as it is when it
// stays the same, with the shares of the update, which goes on to be deployed meanwhile.
func TestRecreateOfChangingFiles(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveWhole(models.UpdateRecreate)
		first := w.id
		w.rewrite("third")
		for n := range 10 { // it changes for longer than it must stay the same
			w.served.change("third "+strconv.Itoa(n), nil)
			w.clock.Advance(11 * time.Second)
			w.get()
		}
		if v := w.get(); v.State != models.DeploymentDeploying || len(w.all()) != 2 || w.shares() != 1 {
			t.Errorf("the update is %s of %d deployments, with %d shares", v.State, len(w.all()), w.shares())
		}
		w.settles("the present files are deployed", func() bool { return len(w.all()) == 3 })
		w.vacated(2)
		w.id = 3
		w.load()
		if v := w.get(); v.Files != "third 9" || v.First() != first || w.shares() != 1 {
			t.Errorf("the update is %+v, with %d shares", v, w.shares())
		}
	})
}

// If it cannot be served then, the update fails and says why, and the version before it is
// deployed again.
func TestRecreateOfBrokenFiles(t *testing.T) {
	for broken, why := range map[error]string{
		models.Conflict("The file is truncated."): "The file is truncated.",
		errors.New("permission denied"):           "The files of the model cannot be read.",
	} {
		each(t, func(t *testing.T, b *world) {
			w := newDeploymentWorld(t, b)
			w.serveWhole(models.UpdateRecreate)
			w.rewrite("third")
			w.served.change("fourth", broken)
			w.settles("the update has ended", func() bool { return w.get().State.Ended() })
			if v := w.get(); v.State != models.DeploymentFailed || v.Reason.String() != "The deployment failed: "+why || v.CurrentID != 3 || w.shares() != 1 {
				t.Errorf("the update is %s: %s; in its place is %d, with %d shares", v.State, v.Reason, v.CurrentID, w.shares())
			}
		})
	}
}

// While a model changes, its deployment can be stopped.
func TestStopWhileFilesChange(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveWhole(models.UpdateRecreate)
		w.rewrite("third")
		if _, err := w.StopDeployment(w.ctx, w.actor, w.id); err != nil {
			t.Fatal(err)
		}
		w.vacated(2)
		if n := len(w.all()); n != 2 || w.shares() != 0 {
			t.Errorf("%d deployments, %d shares", n, w.shares())
		}
	})
}
