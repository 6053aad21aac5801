package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
)

const (
	oneDay = 24 * time.Hour
	// firstNotification is the time of the first notification before an end.
	firstNotification = 7 * oneDay
	// outdated is the time after an end without further notifications.
	outdated = 30 * oneDay

	periodsMinPause = time.Second      // between rounds
	periodsMaxPause = 10 * time.Minute // between rounds; the clock can be set
	periodsRetry    = 10 * time.Second // after a failed round
	projectsAtOnce  = 100              // in one round
)

// Days between a notification and the end.
const (
	daysAtEnd int64 = 0
	daysLast  int64 = 1
	daysFirst int64 = 7
)

// dueNotification returns which notification of an end is due, by its days before
// the end. notified is the last one sent, nil for none. Missed earlier ones are
// skipped.
func dueNotification(now, end time.Time, notified *int64) (days int64, due bool) {
	switch left := end.Sub(now); {
	case left <= -outdated || left > firstNotification:
		return 0, false
	case left <= 0:
		days = daysAtEnd
	case left <= oneDay:
		days = daysLast
	default:
		days = daysFirst
	}
	return days, notified == nil || days < *notified
}

// Periods notifies people of the ends of projects and memberships: 7 days and 1 day
// before, and at the end. Only the leader may run it.
type Periods struct {
	store *store.Store
	wake  chan struct{}
}

// NewPeriods returns Periods; Run starts them.
func NewPeriods(store *store.Store) *Periods {
	p := &Periods{store, make(chan struct{}, 1)}
	store.OnChange(func(topics []string) {
		if slices.ContainsFunc(topics, changesEnds) {
			select {
			case p.wake <- struct{}{}:
			default:
			}
		}
	})
	return p
}

// changesEnds reports whether a change of a topic can concern an end.
func changesEnds(topic string) bool {
	return topic == "projects" || strings.HasPrefix(topic, "project:") || topic == store.AllTopics
}

// Run sends due notifications until ctx ends.
func (p *Periods) Run(ctx context.Context) {
	for ctx.Err() == nil {
		next, err := p.Round(ctx)
		if err != nil && ctx.Err() == nil {
			p.store.Log().ErrorContext(ctx, "notifications of ends", "err", err)
		}
		sleep(ctx, nil, periodsMinPause)
		sleep(ctx, p.wake, min(next.Sub(p.store.Now()), periodsMaxPause))
	}
}

// sleep waits until ctx ends, wake receives, or d is over.
func sleep(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-wake:
	case <-time.After(d):
	}
}

func windowAt(now time.Time) store.PeriodWindow {
	return store.PeriodWindow{Since: now.Add(-outdated), Now: now, Soon: now.Add(oneDay), Ahead: now.Add(firstNotification)}
}

// Round sends due notifications, and returns when the next round is due, also after
// an error.
func (p *Periods) Round(ctx context.Context) (next time.Time, err error) {
	q := p.store.Read(ctx)
	now := q.Now()
	projects, err := q.ProjectsToNotify(windowAt(now), projectsAtOnce)
	if err != nil {
		return now.Add(periodsRetry), err
	}
	var failed []error
	for _, id := range projects {
		failed = append(failed, p.notify(ctx, id))
	}
	err = errors.Join(failed...)
	switch {
	case len(projects) == projectsAtOnce:
		return now, err
	case err != nil:
		return now.Add(periodsRetry), err
	}
	return nextNotification(q, now)
}

// nextNotification is when the next notification is due.
func nextNotification(q *store.Queries, now time.Time) (time.Time, error) {
	next := now.Add(periodsMaxPause)
	for _, ahead := range []time.Duration{0, oneDay, firstNotification} {
		end, err := q.NextEnd(now.Add(ahead))
		if err != nil {
			return next, err
		}
		if end != nil && end.Add(-ahead).Before(next) {
			next = end.Add(-ahead)
		}
	}
	return next, nil
}

// notify sends and records the due notifications of one project in one transaction,
// which locks the project against changes of ends.
func (p *Periods) notify(ctx context.Context, project int64) error {
	return p.store.InTx(ctx, func(q *store.Queries) error {
		t := projectEnds{q: q, ending: map[time.Time][]models.PeriodEnd{}}
		var err error
		if t.project, err = q.LockProject(store.AllProjects, project); err != nil {
			return err
		}
		window := windowAt(q.Now())
		ends, err := q.EndsIn(project, window)
		if err != nil {
			return err
		}
		for _, e := range ends {
			if err := t.notify(e); err != nil {
				return err
			}
		}
		if err := t.notifyManagers(); err != nil {
			return err
		}
		models.Failpoint("period.told")
		return q.PrunePeriodNotifications(window.Since.Add(-outdated))
	})
}

// projectEnds is the ends in one project within the transaction of their notifications.
type projectEnds struct {
	q       *store.Queries
	project models.Project
	ending  map[time.Time][]models.PeriodEnd // memberships that end within a day, by their ends
}

// notify sends the due notification of an end, if any.
func (t *projectEnds) notify(e models.PeriodEnd) error {
	days, due := dueNotification(t.q.Now(), e.EndsAt, e.NotifiedDays)
	if !due {
		return nil
	}
	fresh, err := t.q.RecordPeriodNotification(models.PeriodNotification{Kind: e.Kind, ThingID: e.ThingID, EndsAt: e.EndsAt, Days: days,
		NotifiedAt: t.q.Now()})
	if err != nil || !fresh {
		return err
	}
	n := notificationOfEnd(t.project.Name, e, days)
	if e.Kind == models.EndOfMember {
		if days == daysLast {
			end := e.EndsAt.UTC()
			t.ending[end] = append(t.ending[end], e)
		}
		return t.q.Notify([]int64{e.UserID}, n)
	}
	to, err := t.q.Managers(t.project.ID)
	if err != nil {
		return err
	}
	if days != daysFirst {
		since := t.q.Now()
		if days == daysAtEnd {
			since = e.EndsAt // includes workspaces that were stopped already
		}
		users, err := t.q.UsersWithWorkspaces(t.project.ID, since)
		if err != nil {
			return err
		}
		to = append(to, users...)
	}
	return t.q.Notify(to, n)
}

// EndData is the data of an end in messages to webhooks.
type EndData struct {
	ProjectID int64     `json:"project_id"`
	Project   string    `json:"project"`
	MemberIDs []int64   `json:"member_ids,omitempty"` // of the ending memberships
	EndsAt    time.Time `json:"ends_at"`
	Days      int64     `json:"days"` // until the end; 0 at the end
}

// notificationOfEnd is the notification of the end of a project or a membership.
func notificationOfEnd(project string, e models.PeriodEnd, days int64) models.Notification {
	at := models.EndMoment(e.EndsAt)
	data := EndData{ProjectID: e.ProjectID, Project: project, EndsAt: e.EndsAt, Days: days}
	if e.Kind == models.EndOfMember {
		data.MemberIDs = []int64{e.ThingID}
	}
	n := models.Notification{ProjectID: &e.ProjectID, Link: fmt.Sprintf("/projects/%d", e.ProjectID), Data: data}
	switch {
	case e.Kind == models.EndOfProject && days == daysAtEnd:
		n.Kind, n.Text = models.NotificationPeriodEnded, models.Say("The project %s ended on %s. Its workspaces, runs and deployments were stopped. Its files are kept and remain readable.", project, at)
	case e.Kind == models.EndOfProject:
		n.Kind, n.Text = models.NotificationPeriodEnding, models.Say("The project %s ends on %s. Its workspaces, runs and deployments will be stopped then. Its files are kept and remain readable.", project, at)
	case days == daysAtEnd: // without access to the project's page
		n.Kind, n.Text = models.NotificationDeadlineEnded, models.Say("Your membership in %s ended on %s. Your workspaces, runs and deployments there were stopped. Your files are kept.", project, at)
		n.Link = fmt.Sprintf("/requests/new?kind=deadline&project_id=%d", e.ProjectID)
	default:
		n.Kind, n.Text = models.NotificationDeadlineEnding, models.Say("Your membership in %s ends on %s. Your workspaces, runs and deployments there will be stopped then. Your files are kept.", project, at)
	}
	return n
}

// notifyManagers notifies the managers of members whose membership ends within a
// day, once for each end.
func (t *projectEnds) notifyManagers() error {
	for end, list := range t.ending {
		to, err := t.q.Managers(t.project.ID)
		if err != nil {
			return err
		}
		if err := t.q.Notify(to, notificationOfMembers(t.project, end, list)); err != nil {
			return err
		}
	}
	return nil
}

func notificationOfMembers(project models.Project, end time.Time, list []models.PeriodEnd) models.Notification {
	data := EndData{ProjectID: project.ID, Project: project.Name, EndsAt: end, Days: daysLast}
	for _, e := range list {
		data.MemberIDs = append(data.MemberIDs, e.ThingID)
	}
	n := models.Notification{Kind: models.NotificationDeadlineMembers, Link: fmt.Sprintf("/projects/%d", project.ID), Data: data,
		Text: models.Say("The membership of %d members of %s ends on %s.", len(list), project.Name, models.EndMoment(end))}
	if len(list) == 1 {
		n.Text = models.Say("The membership of %s in %s ends on %s.", list[0].UserName, project.Name, models.EndMoment(end))
		n.Link += fmt.Sprintf("/members/%d/edit", list[0].ThingID)
	}
	return n
}
