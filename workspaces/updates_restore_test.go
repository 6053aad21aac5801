package workspaces_test

import (
	"io/fs"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/runtime"
)

// fails lets the processes of the deployment end until it fails.
func (w *deploymentWorld) fails(id int64) {
	w.Helper()
	w.id = id
	w.poll(w.T, "the deployment fails", func() bool {
		if v := w.get(); v.State == models.DeploymentDeploying && v.Parts[0].State == models.PartLoading {
			w.set(func(p *partProcess) { p.ended = &runtime.RunStatus{Ended: true, ExitCode: 70} })
		} else if v.Parts[0].State == models.PartWaiting {
			w.clock.Advance(time.Second) // it pauses before it is started again
		}
		return w.get().Failed
	})
}

// failingUpdate is a world with an update, deployment 2, for which deployment 1 was stopped, and
// which has failed.
func failingUpdate(t *testing.T, b *world, before ...func(w *deploymentWorld)) *deploymentWorld {
	t.Helper()
	w := newDeploymentWorld(t, b)
	w.serveWhole(models.UpdateRecreate)
	w.served.change("second", nil)
	w.updated()
	for _, change := range before {
		change(w)
	}
	w.fails(2)
	return w
}

// An update that fails before it serves, and for which the deployment was stopped, has the
// version before it deployed again, with the shares: nobody else can take them in between. The
// files that failed are not tried again until they change. A restart of the server changes nothing.
func TestFailedUpdateGoesBack(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		const first = 1
		w := failingUpdate(t, b)
		w.restart()
		if n := w.shares(); n != 1 {
			t.Errorf("when the update has failed, %d shares are in use", n)
		}
		w.clock.Advance(time.Minute)
		w.get()
		if kept := w.served.swept[len(w.served.swept)-1]; !slices.Contains(kept, first) {
			t.Errorf("the files of %v are kept, not those of the version before", kept)
		}
		w.vacated(2)
		if v := w.get(); v.State != models.DeploymentFailed || v.CurrentID != 3 || !w.has("Deployment 3 has the version before it.") {
			t.Errorf("the update is %s, in its place is %d: %+v", v.State, v.CurrentID, v.Events)
		}
		w.id = 3
		w.until(models.PartLoading) // what is written when a server ends is written again
		w.restart()
		w.load()
		w.passes()
		w.passes()
		v := w.get()
		if v.State != models.DeploymentServing || v.Files != "first" || v.First() != first || v.Demand.Cores != 60 || v.UpdateStrategy != models.UpdateRecreate {
			t.Errorf("in its place is %+v", v)
		}
		if !w.has("This is deployment 1 again, because its update, deployment 2, has failed.") {
			t.Errorf("%+v", v.Events)
		}
		if len(w.all()) != 3 || w.shares() != 1 || !slices.Equal(w.served.linked, [][2]int64{{3, first}}) || w.served.writes != 2 {
			t.Errorf("%d deployments, %d shares, written %d times, linked %v", len(w.all()), w.shares(), w.served.writes, w.served.linked)
		}
		w.clock.Advance(10 * time.Minute)
		w.served.change("third", nil)
		if id := w.updated(); id != 4 {
			t.Errorf("the next update is %d", id)
		}
	})
}

// If the version before fails, too, nothing is deployed again.
func TestFailedUpdateGoesBackOnce(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := failingUpdate(t, b)
		w.vacated(2)
		w.fails(3)
		w.vacated(3)
		w.passes()
		if v := w.get(); v.State != models.DeploymentFailed || len(w.all()) != 3 || w.shares() != 0 {
			t.Errorf("it is %s, the last of %d, with %d shares", v.State, len(w.all()), w.shares())
		}
	})
}

// If its parts are lost, the version before fails after three attempts, and nothing else is
// deployed: the files that failed are not tried again either.
func TestFallbackWithoutParts(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := failingUpdate(t, b, func(w *deploymentWorld) { w.served.lost = fs.ErrNotExist })
		w.vacated(2)
		w.id = 3
		w.settles("the version before has failed", func() bool { return w.get().State.Ended() })
		w.passes()
		if n := len(w.served.linked); n != 3 || len(w.all()) != 3 || w.shares() != 0 {
			t.Errorf("%d attempts, %d deployments, %d shares", n, len(w.all()), w.shares())
		}
	})
}

// Files that are as before while an update is written are deployed as others are.
func TestFilesAreAsBefore(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		w.serveWhole(models.UpdateRecreate)
		w.rewrite("third")
		w.served.change("first", nil)
		w.settles("the present files are deployed", func() bool { return len(w.all()) == 3 })
		w.id = 3
		w.load()
		if v := w.get(); v.Files != "first" || len(w.served.linked) != 0 || v.FallbackID == nil || *v.FallbackID != 1 {
			t.Errorf("%+v, linked %v", v, w.served.linked)
		}
	})
}

// Whoever stops the deployment while a failed update ends gets nothing deployed again, and
// neither does who may not deploy any more; then the history says so.
func TestFailedUpdateIsNotReplaced(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := failingUpdate(t, b, func(w *deploymentWorld) { w.actors.err = &models.Error{Kind: models.KindUnauthenticated} })
		w.vacated(2)
		if len(w.all()) != 2 || w.shares() != 0 || !w.has("The version before it is not deployed again:") {
			t.Errorf("%d deployments, %d shares: %+v", len(w.all()), w.shares(), w.get().Events)
		}
	})
	each(t, func(t *testing.T, b *world) {
		w := failingUpdate(t, b)
		if _, err := w.StopDeployment(w.ctx, w.actor, 1); err != nil {
			t.Fatal(err)
		}
		w.vacated(2)
		if n := len(w.all()); n != 2 || w.shares() != 0 {
			t.Errorf("%d deployments, %d shares", n, w.shares())
		}
	})
}
