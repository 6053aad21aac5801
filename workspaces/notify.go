package workspaces

import (
	"fmt"

	"weir/models"
	"weir/models/store"
	"weir/pool/quota"
)

// notifyTransition notifies of a workspace's new state. Its user is notified of what
// happens without them; the rest is for webhooks.
func notifyTransition(q *store.Queries, w *models.Workspace, from models.WorkspaceState) error {
	var to []int64
	n := workspaceNotification(w)
	switch {
	case from == w.State:
		return nil
	case from == models.StateQueued && w.State == models.StateStarting:
		to = []int64{w.UserID}
		n.Kind, n.Text = models.NotificationWorkspaceScheduled, models.Say("The workspace %s has left the queue and is starting.", w.Name)
	case w.State == models.StateRunning:
		n.Kind, n.Text = models.NotificationWorkspaceStarted, models.Say("The workspace %s is running.", w.Name)
	case w.State == models.StateStopped:
		n.Kind, n.Text = models.NotificationWorkspaceStopped, models.Say("The workspace %s has stopped.", w.Name)
	case w.State == models.StateFailed:
		to = []int64{w.UserID}
		n.Kind, n.Text = models.NotificationWorkspaceFailed, models.Say("The workspace %s failed: %s", w.Name, w.Reason)
	default:
		return nil
	}
	return q.Notify(to, n)
}

// workspaceNotification is a notification about a workspace, without its kind and text.
func workspaceNotification(w *models.Workspace) models.Notification {
	return models.Notification{Link: fmt.Sprintf("/workspaces/%d", w.ID),
		Data: models.WorkspaceNotification{WorkspaceID: w.ID, ProjectID: w.ProjectID, Name: w.Name, UserID: w.UserID}}
}

// notifyOwner notifies the owner of a workspace.
func notifyOwner(q *store.Queries, w models.Workspace, kind string, text models.Text) error {
	n := workspaceNotification(&w)
	n.Kind, n.Text = kind, text
	return q.Notify([]int64{w.UserID}, n)
}

// notifyRunScheduled tells the user of a run that it has left the queue, unless a client waits for it.
func notifyRunScheduled(q *store.Queries, r models.Run) error {
	return notifyRun(q, r, r.LeaseSeconds == 0, models.NotificationRunScheduled,
		models.Say("The run %s has left the queue and is starting.", r.Name))
}

// notifyRunEnded tells the user of a run how it has ended, unless a client waits for it or they have
// stopped it.
func notifyRunEnded(q *store.Queries, r models.Run) error {
	text := models.Say("The run %s has ended.", r.Name)
	switch {
	case !r.Reason.Empty():
		text = models.Say("The run %s has ended: %s", r.Name, r.Reason)
	case r.ExitCode != nil:
		text = models.Say("The run %s has ended with exit code %d.", r.Name, *r.ExitCode)
	}
	alone := r.LeaseSeconds == 0 || r.Attached && q.Now().Sub(r.LeaseSince()) >= r.Lease() // its client has vanished
	own := r.StoppedBy != nil && *r.StoppedBy == r.UserID
	return notifyRun(q, r, alone && !own, models.NotificationRunEnded, text)
}

// notifyRun tells webhooks and, if told is set, the user of a run something about it.
func notifyRun(q *store.Queries, r models.Run, told bool, kind string, text models.Text) error {
	data := models.RunNotification{RunID: r.ID, ProjectID: r.ProjectID, Name: r.Name, UserID: r.UserID, ExitCode: r.ExitCode}
	if r.WorkspaceID != nil {
		data.WorkspaceID = *r.WorkspaceID
	}
	var to []int64
	if told {
		to = []int64{r.UserID}
	}
	return q.Notify(to, models.Notification{Kind: kind, Link: fmt.Sprintf("/runs/%d", r.ID), Text: text, Data: data})
}

// notifyNearlyUsed notifies the managers of a project when a holder, which has just got
// its resources, makes its quota nearly used.
func notifyNearlyUsed(q *store.Queries, c models.Claim) error {
	after, err := q.InUseByProject(c.ProjectID)
	if err != nil {
		return err
	}
	project, err := q.Project(store.AllProjects, c.ProjectID)
	if err != nil {
		return err
	}
	list := quota.NearlyUsed(after.Sub(c.Demand.Resources()), after, project.Quota)
	if len(list) == 0 {
		return nil
	}
	to, err := q.Managers(c.ProjectID)
	if err != nil {
		return err
	}
	r := list[0]
	return q.Notify(to, models.Notification{Kind: models.NotificationQuotaNearlyUsed, Link: fmt.Sprintf("/projects/%d", project.ID),
		Text: models.Say("%s: the project %s uses %s of its quota of %s.", r.Label, project.Name, models.Quantity(r.Name, r.Value),
			models.Quantity(r.Name, r.Quota)),
		Data: models.QuotaNotification{ProjectID: project.ID, InUse: after, Quota: project.Quota}})
}
