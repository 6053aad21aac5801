package requests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"weir/models"
)

const (
	oneDay = 24 * time.Hour
	// firstNotification is how long before an end people are told first, and how
	// near an end is to be worth a word on a page.
	firstNotification = 7 * oneDay
	// outdated is how long after an end nobody is told of it any more.
	outdated = 30 * oneDay

	periodsPause  = time.Second      // between rounds, however much changes
	periodsLook   = 10 * time.Minute // between rounds when nothing changes: the clock may be set
	periodsRetry  = 10 * time.Second // after a round that failed
	projectsAtOne = 100              // in one round; the next begins at once
)

// How many days before an end people are told; at the end, too.
const (
	daysAtEnd int64 = 0
	daysLast  int64 = 1
	daysFirst int64 = 7
)

// dueNotification tells which notice of an end is to be given now, by how many days
// it is ahead. told is the nearest that was given of this end, nil for none.
// Only the nearest is ever due: who was not told in time is not told twice.
func dueNotification(now, end time.Time, told *int64) (days int64, due bool) {
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
	return days, told == nil || days < *told
}

// PeriodsConfig is what Periods work with.
type PeriodsConfig struct {
	Store *models.Store
	// Fence refuses the transactions of a server that does not lead any more;
	// nil where there is only one.
	Fence  func(*models.Queries) error
	Logger *slog.Logger
}

// Periods tell people of the ends of projects and participations: 7 days
// ahead, 1 day ahead, and at the end, each once. One server at a time may run
// them.
type Periods struct {
	PeriodsConfig
	wake chan struct{}
}

// NewPeriods makes Periods; Run starts them.
func NewPeriods(c PeriodsConfig) *Periods {
	p := &Periods{c, make(chan struct{}, 1)}
	c.Store.OnChange(func(topics []string) {
		if slices.ContainsFunc(topics, movesEnd) {
			select {
			case p.wake <- struct{}{}:
			default:
			}
		}
	})
	return p
}

// movesEnd tells whether a change may have moved an end, or made one.
func movesEnd(topic string) bool {
	return topic == "projects" || strings.HasPrefix(topic, "project:") || topic == models.AllTopics
}

// Run tells people until ctx ends: when something is due, and when an end may
// have moved.
func (p *Periods) Run(ctx context.Context) {
	for ctx.Err() == nil {
		next, err := p.Round(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, models.ErrFenced) {
			p.Logger.ErrorContext(ctx, "notifications of ends", "err", err)
		}
		sleep(ctx, nil, periodsPause)
		sleep(ctx, p.wake, min(next.Sub(p.Store.Now()), periodsLook))
	}
}

// sleep waits until ctx ends, somebody wakes it, or d is over.
func sleep(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

func windowAt(now time.Time) models.PeriodWindow {
	return models.PeriodWindow{Since: now.Add(-outdated), Now: now, Soon: now.Add(oneDay), Ahead: now.Add(firstNotification)}
}

// Round gives the notices that are due, and tells when the next is, or, when
// something went wrong, when to try again.
func (p *Periods) Round(ctx context.Context) (next time.Time, err error) {
	q := p.Store.Read(ctx)
	now := q.Now()
	projects, err := q.ProjectsToNotify(windowAt(now), projectsAtOne)
	if err != nil {
		return now.Add(periodsRetry), err
	}
	var failed []error
	for _, id := range projects {
		failed = append(failed, p.tell(ctx, id))
	}
	if len(projects) == projectsAtOne {
		return now, errors.Join(failed...)
	}
	if err := errors.Join(failed...); err != nil {
		return now.Add(periodsRetry), err
	}
	return p.next(q, now)
}

// next is when the next notice will be due.
func (p *Periods) next(q *models.Queries, now time.Time) (time.Time, error) {
	next := now.Add(periodsLook)
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

// tell gives the notices that are due in one project. They and the notes that
// they were given are one transaction, under the lock that moving an end
// takes.
func (p *Periods) tell(ctx context.Context, project int64) error {
	return p.Store.InTx(ctx, func(q *models.Queries) error {
		if p.Fence != nil {
			if err := p.Fence(q); err != nil {
				return err
			}
		}
		t := endsOf{q: q, ending: map[time.Time][]models.PeriodEnd{}}
		var err error
		if t.project, err = q.LockProject(models.Everything, project); err != nil {
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

// endsOf is one project's ends within the transaction that tells of them.
type endsOf struct {
	q       *models.Queries
	project models.Project
	ending  map[time.Time][]models.PeriodEnd // participations that end within a day, by their ends
}

// notify gives the notice of an end that is due, if one is.
func (t *endsOf) notify(e models.PeriodEnd) error {
	days, due := dueNotification(t.q.Now(), e.EndsAt, e.NotifiedDays)
	if !due {
		return nil
	}
	fresh, err := t.q.RecordPeriodNotification(models.PeriodNotification{Kind: e.Kind, ThingID: e.ThingID, EndsAt: e.EndsAt, Days: days, NotifiedAt: t.q.Now()})
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
	to, err := memberManagers(t.q, t.project.ID)
	if err != nil {
		return err
	}
	if days != daysFirst {
		since := t.q.Now()
		if days == daysAtEnd {
			since = e.EndsAt // also those whose workspaces were stopped already
		}
		holders, err := t.q.UsersWithWorkspaces(t.project.ID, since)
		if err != nil {
			return err
		}
		to = append(to, holders...)
	}
	return t.q.Notify(to, n)
}

// EndData is what webhooks are told of an end.
type EndData struct {
	ProjectID int64     `json:"project_id"`
	Project   string    `json:"project"`
	MemberIDs []int64   `json:"member_ids,omitempty"` // whose participation ends
	EndsAt    time.Time `json:"ends_at"`
	Days      int64     `json:"days"` // ahead; 0 is at the end
}

// notificationOfEnd words a notice for those whose end it is.
func notificationOfEnd(project string, e models.PeriodEnd, days int64) models.Notification {
	at := models.Moment(e.EndsAt)
	n := models.Notification{ProjectID: &e.ProjectID, Link: fmt.Sprintf("/projects/%d", e.ProjectID),
		Data: EndData{ProjectID: e.ProjectID, Project: project, EndsAt: e.EndsAt, Days: days}}
	switch {
	case e.Kind == models.EndOfProject && days == daysAtEnd:
		n.Kind, n.Text = "period.ended", models.Say("The project %s ended on %s. Its workspaces were stopped. Its files are kept and remain readable.", project, at)
	case e.Kind == models.EndOfProject:
		n.Kind, n.Text = "period.ending", models.Say("The project %s ends on %s. Its workspaces will be stopped then. Its files are kept and remain readable.", project, at)
	case days == daysAtEnd: // the project's page is closed to them
		n.Kind, n.Text = "deadline.ended", models.Say("Your membership in %s ended on %s. Your workspaces there were stopped. Your files are kept.", project, at)
		n.Link = fmt.Sprintf("/requests/new?kind=deadline&project_id=%d", e.ProjectID)
	default:
		n.Kind, n.Text = "deadline.ending", models.Say("Your membership in %s ends on %s. Your workspaces there will be stopped then. Your files are kept.", project, at)
	}
	if e.Kind == models.EndOfMember {
		n.Data = EndData{ProjectID: e.ProjectID, Project: project, MemberIDs: []int64{e.ThingID}, EndsAt: e.EndsAt, Days: days}
	}
	return n
}

// notifyManagers tells those who may change members whose participation ends within
// a day: of those who end together in one notice.
func (t *endsOf) notifyManagers() error {
	for end, list := range t.ending {
		to, err := memberManagers(t.q, t.project.ID)
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
	n := models.Notification{Kind: "deadline.members", Link: fmt.Sprintf("/projects/%d", project.ID), Data: data,
		Text: models.Say("The membership of %d members of %s ends on %s.", len(list), project.Name, models.Moment(end))}
	if len(list) == 1 {
		n.Text = models.Say("The membership of %s in %s ends on %s.", list[0].UserName, project.Name, models.Moment(end))
		n.Link += fmt.Sprintf("/members/%d/edit", list[0].ThingID)
	}
	return n
}
