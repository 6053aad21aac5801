package workspaces_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/projects"
	"weir/pool/requests"
	"weir/workspaces"
)

const day = 24 * time.Hour

// queue launches what has to wait.
func (b *world) queue(t *testing.T, actor policies.Actor, name string) models.Workspace {
	t.Helper()
	in := b.ask(name, gpu(1, 100))
	in.WhenInsufficient = workspaces.WhenInsufficientWait
	w, err := b.Launch(b.ctx, actor, in)
	if err != nil || w.State != models.StateQueued {
		t.Fatalf("%+v, %v", w, err)
	}
	return w
}

func (b *world) endsAt(t *testing.T, end time.Time) {
	t.Helper()
	if _, err := b.projects.UpdateProject(b.ctx, b.root, b.project.ID, projects.ProjectInput{Name: "vision", Quota: plenty.Input(), EndsAt: &end}); err != nil {
		t.Fatal(err)
	}
}

// told are the kinds of notices that somebody got, oldest first.
func (b *world) told(t *testing.T, u models.User) (kinds []string) {
	t.Helper()
	list, err := b.store.Read(b.ctx).Notifications(u.ID, store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range slices.Backward(list) {
		kinds = append(kinds, n.Kind)
	}
	return kinds
}

// Through the last 8 days of a project: notices, an extension that moves them,
// and an end at which all stops in order and nothing starts any more.
func TestTheLastDaysOfAProject(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		lead, err := b.projects.CreateRole(b.ctx, b.root, b.project.ID, projects.RoleInput{Name: "lead", Permission: "manager"})
		if err != nil {
			t.Fatal(err)
		}
		_, boss := b.addMember(t, lead)
		_, ann := b.addMember(t, b.role)
		notifications := requests.NewPeriods(b.store)
		pass := func(d time.Duration) {
			t.Helper()
			b.clock.Advance(d)
			if _, err := notifications.Round(b.ctx); err != nil {
				t.Fatal(err)
			}
			b.Tick(b.ctx)
		}
		end := b.store.Now().Add(8 * day)
		b.endsAt(t, end)
		first := b.until(t, b.launch(t, "first", gpu(1, 70)).ID, models.StateRunning)
		second := b.until(t, b.launch(t, "second", gpu(1, 30)).ID, models.StateRunning)
		waits, later := b.queue(t, ann, "waits"), b.queue(t, b.actor, "waits, too")
		if v, err := b.View(b.ctx, b.actor, first.ID); err != nil || v.ScheduledStop == nil || !v.ScheduledStop.At.Equal(end) || v.ScheduledStop.Deadline || v.DirectoryUser.Ended {
			t.Errorf("%+v, %v", v.ScheduledStop, err)
		}

		pass(day) // 7 days ahead
		pass(6 * day)
		want := []string{"period.ending", "period.ending"}
		if got := b.told(t, boss.User); !slices.Equal(got, want) {
			t.Errorf("the manager was told %q", got)
		}
		if got := b.told(t, ann.User); !slices.Equal(got, want[:1]) {
			t.Errorf("who waits was told %q", got)
		}
		end = end.Add(7 * day)
		b.endsAt(t, end)
		pass(day) // the first end
		for _, w := range []models.Workspace{first, second, waits, later} {
			if got := b.row(t, w.ID); got.State != w.State {
				t.Errorf("%s is %s at the end that was moved", w.Name, got.State)
			}
		}
		pass(6 * day)
		if got := b.told(t, boss.User); len(got) != 4 {
			t.Errorf("the manager was told %q", got)
		}

		pass(day)
		reason := "the project's period of use ended on " + models.LastDay(end).Format(time.DateOnly) + "."
		for _, w := range []models.Workspace{waits, later} {
			if got := b.row(t, w.ID); got.State != models.StateStopped || got.Reason.String() != "Canceled while queued: "+reason {
				t.Errorf("%s is %s: %s", w.Name, got.State, got.Reason)
			}
		}
		for _, w := range []models.Workspace{first, second} {
			if got := b.until(t, w.ID, models.StateStopped); got.Reason.String() != "Stopped: "+reason {
				t.Errorf("%s: %s", w.Name, got.Reason)
			}
		}
		if b.shares(t) != 0 || len(b.runtime.alive()) != 0 {
			t.Errorf("%d cores, %v", b.shares(t), b.runtime.alive())
		}
		if got, want := b.stopOrder(t), []int64{later.ID, waits.ID, second.ID, first.ID}; !slices.Equal(got, want) {
			t.Errorf("stopped in the order %v, want %v", got, want)
		}
		if got := b.told(t, b.actor.User); got[len(got)-1] != "period.ended" {
			t.Errorf("who had workspaces was told %q", got)
		}
		_, err = b.Launch(b.ctx, b.actor, b.ask("again", models.LaunchParameters{}))
		if models.KindOf(err) != models.KindForbidden {
			t.Errorf("launched after the end: %v", err)
		}
		if v, err := b.View(b.ctx, b.actor, first.ID); err != nil || v.ScheduledStop != nil || !v.DirectoryUser.Ended {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// stopOrder are the workspaces that the reconciler told to stop, in order.
func (b *world) stopOrder(t *testing.T) (ids []int64) {
	t.Helper()
	entries, err := b.store.Read(b.ctx).Audit(store.AuditFilter{}, store.Page{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slices.Backward(entries) {
		if e.Action == "stop" && e.Actor == "weir reconciler" {
			ids = append(ids, e.ObjectID)
		}
	}
	return ids
}

// Each of the things that can end says its own reason, the first of several.
func TestTrueReasons(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, b *world) error
		says string
	}{
		{"removed", func(_ *testing.T, b *world) error {
			b.clock.Advance(30 * time.Minute)
			return b.projects.RemoveMember(b.ctx, b.root, b.project.ID, b.member.ID)
		}, "the membership ended on 2030-01-02 00:30 UTC"},
		{"deadline before the project's end", func(t *testing.T, b *world) error {
			until := b.store.Now().Add(time.Hour)
			b.endsAt(t, until.Add(time.Minute))
			_, err := b.projects.UpdateMember(b.ctx, b.root, b.project.ID, b.member.ID, projects.MemberInput{RoleID: b.role.ID, Until: &until})
			b.clock.Advance(2 * time.Hour)
			return err
		}, "membership in the project ended on 2030-01-02 01:00 UTC"},
		{"the project's end before the deadline", func(t *testing.T, b *world) error {
			until := b.store.Now().Add(25 * time.Hour)
			b.endsAt(t, until.Add(-time.Hour))
			_, err := b.projects.UpdateMember(b.ctx, b.root, b.project.ID, b.member.ID, projects.MemberInput{RoleID: b.role.ID, Until: &until})
			b.clock.Advance(48 * time.Hour)
			return err
		}, "the project's period of use ended on 2030-01-02"},
		{"a later begin", func(_ *testing.T, b *world) error {
			starts := b.store.Now().Add(72 * time.Hour)
			_, err := b.projects.UpdateProject(b.ctx, b.root, b.project.ID, projects.ProjectInput{Name: "vision", Quota: plenty.Input(), StartsAt: &starts})
			return err
		}, "the project's period of use does not start until 2030-01-05"},
		{"disabled account", func(_ *testing.T, b *world) error {
			u := b.actor.User
			u.Disabled = true
			return b.store.InTx(b.ctx, func(q *store.Queries) error { return q.UpdateUser(&u) })
		}, "the account is disabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newWorld(t, storetest.Open(t, "sqlite"))
			b.gpus(t, 1)
			running := b.until(t, b.launch(t, "running", gpu(1, 100)).ID, models.StateRunning)
			queued := b.queue(t, b.actor, "queued")
			if err := c.end(t, b); err != nil {
				t.Fatal(err)
			}
			if got := b.until(t, running.ID, models.StateStopped).Reason.String(); got != "Stopped: "+c.says+"." {
				t.Errorf("running: %q", got)
			}
			if got := b.row(t, queued.ID); got.Reason.String() != "Canceled while queued: "+c.says+"." {
				t.Errorf("queued: %s, %q", got.State, got.Reason)
			}
		})
	}
}

// What was requested when its project had begun goes on when the clock is set back before that, and
// can be used.
func TestTheClockIsSetBack(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		b.clock.Advance(time.Minute)
		running := b.until(t, b.launch(t, "running", gpu(1, 100)).ID, models.StateRunning)
		queued := b.queue(t, b.actor, "queued")
		b.clock.Advance(-48 * time.Hour)
		b.Tick(b.ctx)
		for _, w := range []models.Workspace{running, queued} {
			if got := b.row(t, w.ID); got.State != w.State {
				t.Errorf("%s is %s: %s", w.Name, got.State, got.Reason)
			}
		}
		if _, err := b.Open(b.ctx, b.actor, running.ID, workspaces.OpenInput{}); err != nil {
			t.Errorf("open: %v", err)
		}
		if _, err := b.AdmitActor(b.ctx, b.actor, running.ID); err != nil {
			t.Errorf("the notebook: %v", err)
		}
	})
}

// What waits is not placed when its time is over, even where nobody has
// stopped it yet.
func TestNothingIsPlacedAfterTheEnd(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		b.endsAt(t, b.store.Now().Add(time.Hour))
		first := b.until(t, b.launch(t, "first", gpu(1, 100)).ID, models.StateRunning)
		waits := b.queue(t, b.actor, "waits")
		b.clock.Advance(time.Hour)
		storetest.InTx(t, b.store, func(q *store.Queries) error { return b.pool.Release(q, first.HolderID) })
		if err := b.ServeQueue(b.ctx); err != nil || b.row(t, waits.ID).State != models.StateQueued || b.shares(t) != 0 {
			t.Errorf("%s with %d cores, %v", b.row(t, waits.ID).State, b.shares(t), err)
		}
		b.Tick(b.ctx)
		if got := b.row(t, waits.ID).State; got != models.StateStopped {
			t.Errorf("afterwards it is %s", got)
		}
	})
}

// Who inherits a directory writes it from the next start on, and the others
// read it.
func TestAnHeirsMounts(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		gone, _ := b.addMember(t, b.role)
		_, other := b.addMember(t, b.role)
		left := fmt.Sprintf("/notebook/%d/%d", b.project.ID, gone.ID)
		writes := func(actor policies.Actor, name string) bool {
			t.Helper()
			w, err := b.Launch(b.ctx, actor, b.ask(name, models.LaunchParameters{}))
			if err != nil {
				t.Fatal(err)
			}
			b.until(t, w.ID, models.StateRunning)
			spec := b.runtime.specs[len(b.runtime.specs)-1]
			return slices.ContainsFunc(spec.Mounts, func(m models.Mount) bool { return m.Target == left && !m.ReadOnly })
		}
		if writes(b.actor, "before") {
			t.Error("a member writes another's directory")
		}
		if err := b.projects.RemoveMember(b.ctx, b.root, b.project.ID, gone.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := b.projects.CreateHandover(b.ctx, b.root, b.project.ID, gone.ID, projects.HandoverInput{ToMemberID: b.member.ID}); err != nil {
			t.Fatal(err)
		}
		if !writes(b.actor, "after") || writes(other, "other") {
			t.Error("the heir does not write the directory, or another does")
		}
	})
}
