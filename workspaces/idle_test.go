package workspaces_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/projects"
	"weir/workspaces"
	"weir/workspaces/idleness"
)

// idleBench has a running workspace with a GPU that may be idle for an hour.
func idleBench(t *testing.T, b *world) models.Workspace {
	t.Helper()
	b.gpus(t, 1)
	in := projects.ProjectInput{Name: "vision", Quota: plenty.Input(), Launch: models.LaunchParameters{GPUIdleMinutes: new(int64(60))}}
	if _, err := b.projects.UpdateProject(b.ctx, b.root, b.project.ID, in); err != nil {
		t.Fatal(err)
	}
	b.activity = func() (idleness.Observation, error) { return idleness.Observation{}, nil }
	return b.until(t, b.launch(t, "a", gpu(1, 50)).ID, models.StateRunning)
}

// pass lets minutes pass, with an observation in each.
func (b *world) pass(t *testing.T, minutes int) {
	t.Helper()
	for range minutes {
		b.clock.Advance(time.Minute)
		if err := b.ObserveAll(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *world) notified(t *testing.T, kind string) (n int) {
	t.Helper()
	list, err := b.store.Read(b.ctx).Notifications(b.actor.User.ID, store.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if x.Kind == kind {
			n++
		}
	}
	return n
}

func (b *world) idleness(t *testing.T, id int64) workspaces.Idleness {
	t.Helper()
	v, err := b.View(b.ctx, b.actor, id)
	if err != nil || v.Idleness == nil {
		t.Fatalf("%+v, %v", v.Idleness, err)
	}
	return *v.Idleness
}

// An idle workspace is stopped after a reminder, and its GPU is released.
func TestIdleWorkspaceIsStopped(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := idleBench(t, b)
		if i := b.idleness(t, w.ID); i.Known || i.StopsAt != nil || i.Limit != idleness.Limit(time.Hour) {
			t.Errorf("before it was observed: %+v", i)
		}
		b.pass(t, 49)
		if i := b.idleness(t, w.ID); b.notified(t, "workspace.idle") != 0 || i.Reminded || !i.StopsAt.Equal(w.StartedAt.Add(time.Hour)) {
			t.Errorf("after 49 minutes: %+v", i)
		}
		b.pass(t, 10)
		if i := b.idleness(t, w.ID); b.notified(t, "workspace.idle") != 1 || !i.Reminded || !i.StopsAt.Equal(w.StartedAt.Add(time.Hour)) {
			t.Errorf("after 59 minutes, %d reminders: %+v", b.notified(t, "workspace.idle"), i)
		}
		b.pass(t, 1)
		w = b.until(t, w.ID, models.StateStopped)
		if says := "idle for 60 minutes"; !strings.Contains(w.Reason.String(), says) || b.shares(t) != 0 {
			t.Errorf("%q with %d cores", w.Reason, b.shares(t))
		}
		entries, err := b.store.Read(b.ctx).Audit(store.AuditFilter{}, store.Page{Limit: 1})
		if err != nil || entries[0].Action != "stop" || entries[0].Actor != "weir reconciler" {
			t.Errorf("audit: %+v, %v", entries, err)
		}
	})
}

// Work, a click and a server that sees nothing keep it.
func TestWhatKeepsAnIdleWorkspace(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := idleBench(t, b)
		b.pass(t, 51)
		quiet := b.activity
		b.activity = func() (idleness.Observation, error) { return idleness.Observation{Executed: new(time.Second)}, nil }
		b.pass(t, 1)
		if i := b.idleness(t, w.ID); i.Reminded || i.Signal != idleness.Code || !i.WorkedAt.Equal(b.store.Now().Add(-time.Second)) {
			t.Errorf("after a cell: %+v", i)
		}
		b.activity = quiet
		b.pass(t, 55)
		if !b.idleness(t, w.ID).Reminded {
			t.Fatal("not reminded again")
		}
		if _, err := b.Keep(b.ctx, b.actor, w.ID); err != nil {
			t.Fatal(err)
		}
		if i := b.idleness(t, w.ID); i.Reminded || i.Signal != idleness.Kept || !i.StopsAt.Equal(b.store.Now().Add(time.Hour)) {
			t.Errorf("kept: %+v", i)
		}
		b.pass(t, 59)
		b.activity = func() (idleness.Observation, error) { return idleness.Observation{}, errors.New("no answer") }
		b.pass(t, 300)
		if got := b.row(t, w.ID).State; got != models.StateRunning {
			t.Errorf("%s, although nobody knows whether it works", got)
		}
		b.activity = quiet
		b.restart() // another leader begins to observe
		b.pass(t, 1)
		if got := b.row(t, w.ID).State; got != models.StateRunning {
			t.Errorf("%s after one look, which sees nothing of what computes", got)
		}
		b.pass(t, 1)
		if got := b.row(t, w.ID).State; got != models.StateStopping {
			t.Errorf("%s, long after its reminder", got)
		}
		if n := b.notified(t, "workspace.idle"); n != 3 {
			t.Errorf("%d reminders", n)
		}
	})
}

// Work that ends within the period in which nothing is stored counts.
func TestEndOfWork(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := idleBench(t, b)
		cpu := time.Duration(0)
		b.activity = func() (idleness.Observation, error) { return idleness.Observation{CPU: cpu}, nil }
		look := func() {
			t.Helper()
			b.clock.Advance(15 * time.Second)
			if err := b.ObserveAll(b.ctx); err != nil {
				t.Fatal(err)
			}
		}
		look()
		for range 2 {
			cpu += 10 * time.Second
			look()
		}
		worked := b.store.Now()
		look()
		if got := b.row(t, w.ID); !got.WorkedAt.Equal(worked) || got.WorkSignal != string(idleness.Processes) {
			t.Errorf("%q at %v, want processes at %v", got.WorkSignal, got.WorkedAt, worked)
		}
	})
}

// A click between the observation and the stop wins.
func TestKeptAtTheLastMoment(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := idleBench(t, b)
		b.pass(t, 59)
		b.activity = func() (idleness.Observation, error) {
			_, err := b.Keep(b.ctx, b.actor, w.ID)
			return idleness.Observation{}, err
		}
		b.pass(t, 1)
		if got := b.row(t, w.ID); got.State != models.StateRunning || got.WorkSignal != string(idleness.Kept) || got.RemindedAt != nil {
			t.Errorf("%s, %q, %v", got.State, got.WorkSignal, got.RemindedAt)
		}
	})
}

func TestWhoMayKeep(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := idleBench(t, b)
		_, other := b.addMember(t, b.role)
		want(t, second(b.Keep(b.ctx, other, w.ID)), models.KindForbidden)
		foreign := b.addProject(t, "audio", plenty)
		_, stranger := b.addMember(t, b.addRole(t, foreign, "engineer", models.Resources{}))
		want(t, second(b.Keep(b.ctx, stranger, w.ID)), models.KindNotFound)
		free := b.until(t, b.launch(t, "b", models.LaunchParameters{}).ID, models.StateRunning)
		want(t, second(b.Keep(b.ctx, b.actor, free.ID)), models.KindConflict, "not stopped when it is idle")
		if _, err := b.Stop(b.ctx, b.actor, w.ID); err != nil {
			t.Fatal(err)
		}
		want(t, second(b.Keep(b.ctx, b.actor, w.ID)), models.KindConflict, "stopping")
		if v, err := b.View(b.ctx, b.actor, w.ID); err != nil || v.Idleness != nil {
			t.Errorf("of a stopping one: %+v, %v", v.Idleness, err)
		}
	})
}

// A GPU that computes keeps the workspace that has it alone.
func TestGPUUtilisation(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		idleBench(t, b)
		now := b.store.Now()
		utilisation := func() map[int64]int64 {
			t.Helper()
			used, err := b.store.Read(b.ctx).GPUUtilisation(now.Add(-time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			return used
		}
		open, err := b.store.Read(b.ctx).OpenSharesAmong(store.AllMachines)
		if err != nil || len(open) != 1 {
			t.Fatalf("%v, %v", open, err)
		}
		state := models.DeviceState{DeviceID: open[0].DeviceID, At: now, Utilisation: 70, Processes: []models.GPUProcess{}}
		storetest.InTx(t, b.store, func(q *store.Queries) error { return q.SaveStates([]models.DeviceState{state}) })
		if used := utilisation(); len(used) != 0 {
			t.Errorf("of a simulated GPU: %v", used)
		}
		db, err := b.store.SQL()
		if err == nil {
			_, err = db.Exec("UPDATE devices SET simulated = FALSE")
		}
		if err != nil {
			t.Fatal(err)
		}
		if used := utilisation(); used[open[0].ObjectID] != 70 {
			t.Errorf("%v", used)
		}
		b.until(t, b.launch(t, "b", gpu(1, 50)).ID, models.StateRunning)
		if used := utilisation(); len(used) != 0 {
			t.Errorf("of a GPU of two workspaces: %v", used)
		}
		now = now.Add(time.Hour)
		if used := utilisation(); len(used) != 0 {
			t.Errorf("as measured long ago: %v", used)
		}
	})
}

// A run in the environment of a workspace without GPUs is its work until it ends, and the program of
// one with a lease as long as it works. It does not keep the GPUs of a workspace.
func TestWorkspaceOfARunIsNotIdle(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		ws := idleBench(w.T, w.world)
		in := projects.ProjectInput{Name: "vision", Quota: plenty.Input(), Launch: models.LaunchParameters{IdleMinutes: new(int64(60)), GPUIdleMinutes: new(int64(60))}}
		if _, err := w.projects.UpdateProject(w.ctx, w.root, w.project.ID, in); err != nil {
			w.Fatal(err)
		}
		cpu := w.until(w.T, w.launch(w.T, "b", models.LaunchParameters{}).ID, models.StateRunning)
		leased := w.until(w.T, w.launch(w.T, "c", models.LaunchParameters{}).ID, models.StateRunning)
		for _, id := range []int64{ws.ID, cpu.ID} {
			r, err := w.StartRun(w.ctx, w.actor, workspaces.RunInput{WorkspaceID: id, Command: []string{"sleep", "600"}})
			if err != nil {
				w.Fatal(err)
			}
			w.ticks(r.ID, models.RunRunning)
		}
		kernel := w.ticks(w.leased(leased.ID, models.LaunchParameters{}).ID, models.RunRunning)
		w.pass(w.T, 55)
		for id, reminded := range map[int64]bool{ws.ID: true, cpu.ID: false, leased.ID: true} {
			if i := w.idleness(w.T, id); i.Reminded != reminded {
				w.Errorf("workspace %d is reminded: %+v", id, i)
			}
		}
		if i := w.idleness(w.T, cpu.ID); i.Signal != idleness.Run || i.StopsAt.Before(w.store.Now().Add(59*time.Minute)) {
			w.Errorf("the one with a run is %+v", i)
		}
		if _, err := w.RenewRun(w.ctx, w.actor, kernel.ID, workspaces.RunRenewal{Worked: true}); err != nil {
			w.Fatal(err)
		}
		w.pass(w.T, 1)
		if i := w.idleness(w.T, leased.ID); i.Reminded || i.Signal != idleness.Run {
			w.Errorf("when its program has worked: %+v", i)
		}
	})
}

// Each layer overrides the limits of the one before; a member can only shorten them.
func TestIdleLimits(t *testing.T) {
	layer := func(idle, gpu int64) models.LaunchParameters {
		l := models.LaunchParameters{}
		if idle >= 0 {
			l.IdleMinutes = &idle
		}
		if gpu >= 0 {
			l.GPUIdleMinutes = &gpu
		}
		return l
	}
	tests := []struct {
		name                                    string
		platform, project, environment, request models.LaunchParameters
		gpus                                    int64
		limit                                   time.Duration
		wrong                                   []string
	}{
		{name: "none"},
		{name: "the platform's", platform: layer(0, 240), gpus: 1, limit: 4 * time.Hour},
		{name: "without a GPU", platform: layer(0, 240)},
		{name: "the shorter one", platform: layer(60, 240), gpus: 1, limit: time.Hour},
		{name: "the project's", platform: layer(60, 240), project: layer(0, 30), gpus: 1, limit: 30 * time.Minute},
		{name: "the environment's", platform: layer(60, -1), project: layer(120, -1), environment: layer(0, -1)},
		{name: "the member's", project: layer(60, 60), request: layer(20, 10), gpus: 1, limit: 10 * time.Minute},
		{name: "a longer one", project: layer(60, 60), request: layer(61, -1), wrong: []string{"idle_minutes"}},
		{name: "never", project: layer(60, 60), request: layer(-1, 0), gpus: 1, wrong: []string{"gpu_idle_minutes"}},
		{name: "any where there is none", request: layer(999, 0), limit: 999 * time.Minute},
	}
	for _, tt := range tests {
		tt.request.GPUs = &tt.gpus
		target, err := workspaces.MergeParameters(workspaces.Layers{Platform: tt.platform, Project: tt.project, Environment: tt.environment,
			Limit: plenty, Request: tt.request})
		var wrong []string
		var e *models.Error
		if errors.As(err, &e) {
			for _, f := range e.Fields {
				wrong = append(wrong, f.Name)
			}
		}
		if !slices.Equal(wrong, tt.wrong) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := workspaces.IdleLimit(models.Workspace{Demand: target.Demand, Target: target.Parameters}); err == nil && time.Duration(got) != tt.limit {
			t.Errorf("%s: %v, want %v", tt.name, time.Duration(got), tt.limit)
		}
	}
}
