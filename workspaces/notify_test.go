package workspaces_test

import (
	"errors"
	"slices"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/workspaces"
)

// A member is notified of what happens without them; a webhook gets everything.
func TestNotificationsOfAWorkspace(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		storetest.InTx(t, b.store, func(q *store.Queries) error {
			return q.CreateWebhook(&models.Webhook{Name: "all", URL: "https://example.org", Events: []string{}, Enabled: true, Secret: "s", Version: 1, CreatedAt: q.Now()})
		})
		b.gpus(t, 1)
		first := b.until(t, b.launch(t, "first", gpu(1, 100)).ID, models.StateRunning)
		waiting := b.queue(t, b.actor, "second")
		if _, err := b.Stop(b.ctx, b.actor, first.ID); err != nil {
			t.Fatal(err)
		}
		b.until(t, waiting.ID, models.StateRunning)
		if _, err := b.Stop(b.ctx, b.actor, waiting.ID); err != nil {
			t.Fatal(err)
		}
		b.until(t, waiting.ID, models.StateStopped)
		b.runtime.refuse = errors.New("x")
		b.until(t, b.launch(t, "third", gpu(1, 50)).ID, models.StateFailed)

		if got, want := b.told(t, b.actor.User), []string{models.NotificationWorkspaceScheduled, models.NotificationWorkspaceFailed}; !slices.Equal(got, want) {
			t.Errorf("the member is notified of %q, want %q", got, want)
		}
		list, err := b.store.Read(b.ctx).Deliveries(store.DeliveryFilter{}, store.Page{})
		if err != nil {
			t.Fatal(err)
		}
		var sent []string
		for _, d := range list {
			sent = append(sent, d.Kind)
		}
		slices.Sort(sent)
		want := []string{models.NotificationWorkspaceFailed, models.NotificationWorkspaceScheduled, models.NotificationWorkspaceStarted,
			models.NotificationWorkspaceStarted, models.NotificationWorkspaceStopped, models.NotificationWorkspaceStopped}
		if !slices.Equal(sent, want) {
			t.Errorf("the webhook gets %q, want %q", sent, want)
		}
	})
}

// The user of a run is told how it has ended, unless they know: they wait for it or have stopped it.
func TestNotificationsOfARun(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		notified := func() (texts []string) {
			list, err := w.store.Read(w.ctx).Notifications(w.actor.User.ID, store.Page{})
			if err != nil {
				w.Fatal(err)
			}
			for _, n := range list {
				if n.Kind == models.NotificationRunEnded || n.Kind == models.NotificationRunScheduled {
					texts = append(texts, n.Text.String())
				}
			}
			return texts
		}
		w.ticks(w.start("exit 3").ID, models.RunEnded)
		if got := notified(); !slices.Equal(got, []string{"The run sh has ended with exit code 3."}) {
			w.Errorf("told %q", got)
		}
		in := workspaces.RunInput{ProjectID: w.project.ID, Command: []string{"sleep", "600"}, TimeLimitSeconds: 1, Name: "limited"}
		limited, err := w.StartRun(w.ctx, w.actor, in)
		if err != nil {
			w.Fatal(err)
		}
		w.ticks(limited.ID, models.RunEnded)
		if got := notified(); len(got) != 2 || got[0] != "The run limited has ended: The time limit of 1s was reached." {
			w.Errorf("told %q", got)
		}
		in = workspaces.RunInput{ProjectID: w.project.ID, Command: []string{"true"}, LeaseSeconds: 60, Attached: true}
		attached, err := w.StartRun(w.ctx, w.actor, in)
		if err != nil {
			w.Fatal(err)
		}
		w.ticks(attached.ID, models.RunEnded)
		own := w.ticks(w.start("sleep 600").ID, models.RunRunning)
		if _, err := w.StopRun(w.ctx, w.actor, own.ID); err != nil {
			w.Fatal(err)
		}
		w.ticks(own.ID, models.RunEnded)
		if got := notified(); len(got) != 2 {
			w.Errorf("told %q of runs that were waited for or stopped", got)
		}
	})
}

// Managers are notified when a launch makes the quota nearly used, once.
func TestNotificationOfANearlyUsedQuota(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 2)
		project := b.addProject(t, "small", models.Resources{GPUCores: 100, GPUMemoryMiB: 1e9, CPUMilli: 1e6, MemoryMiB: 1e7})
		_, actor := b.addMember(t, b.addRole(t, project, "engineer", project.Quota))
		launch := func(name string, cores int64) {
			t.Helper()
			if _, err := b.Launch(b.ctx, actor, workspaces.LaunchInput{ProjectID: project.ID, Name: name, Request: gpu(1, cores)}); err != nil {
				t.Fatal(err)
			}
		}
		launch("a", 50)
		if got := b.told(t, b.root.User); len(got) > 0 {
			t.Errorf("with half of the quota in use: %q", got)
		}
		launch("b", 40)
		launch("c", 5)
		if got := b.told(t, b.root.User); !slices.Equal(got, []string{models.NotificationQuotaNearlyUsed}) {
			t.Errorf("with 90 and 95 percent in use: %q", got)
		}
		list, err := b.store.Read(b.ctx).Notifications(b.root.User.ID, store.Page{})
		if err != nil || list[0].Text.String() != "GPU cores: the project small uses 90 of its quota of 100." {
			t.Errorf("%v, %v", list, err)
		}
	})
}
