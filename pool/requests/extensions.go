package requests

import (
	"context"
	"time"

	"weir/models"
	"weir/policies"
)

// longer is how much later an end is that is asked for in one click.
const longer = 30 * oneDay

// Extensions are what the actor can do about ends that are near or over, in
// some projects: of those that the actor sees, and of the own participation.
func (s *Service) Extensions(ctx context.Context, actor policies.Actor, projects []int64) ([]models.Extension, error) {
	if actor.User.ID == 0 || len(projects) == 0 {
		return nil, nil
	}
	q := s.store.Read(ctx)
	seen, err := q.ProjectsOf(actor.Scope(), projects)
	if err != nil {
		return nil, err
	}
	mine, err := q.ParticipationsIn(actor.User.ID, projects)
	if err != nil {
		return nil, err
	}
	now := q.Now()
	var list []models.Extension
	for _, p := range seen {
		if near(p.EndsAt, now) && s.extends(actor, p.ID) {
			list = append(list, models.Extension{Kind: models.RequestPeriod, ProjectID: p.ID, Project: p.Name, EndsAt: *p.EndsAt,
				Later: laterThan(*p.EndsAt, now), Direct: s.access.May(actor, p.ID, policies.ProjectWrite),
				Reason: models.Say("The work continues after the project's period of use ends.")})
		}
	}
	for _, m := range mine {
		if near(m.Until, now) {
			list = append(list, models.Extension{Kind: models.RequestDeadline, ProjectID: m.ProjectID, Project: m.ProjectName, MemberID: m.ID, EndsAt: *m.Until,
				Later: laterThan(*m.Until, now), Direct: s.access.May(actor, m.ProjectID, policies.ProjectWrite),
				Reason: models.Say("My work continues after my membership ends.")})
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return pendingFor(q, actor, projects, list)
}

// extends tells whether a later end of a project is the actor's business: as
// its member, or as who sets it.
func (s *Service) extends(actor policies.Actor, project int64) bool {
	return actor.MemberOf(project) || s.access.May(actor, project, policies.ProjectWrite)
}

// near tells whether an end is so near that people were told of it, or over.
func near(end *time.Time, now time.Time) bool { return end != nil && end.Sub(now) <= firstNotification }

// laterThan is the end that is asked for: 30 days later, counted from
// tomorrow where the end is over.
func laterThan(end, now time.Time) time.Time {
	if end.Before(now) {
		end = now.Truncate(oneDay).Add(oneDay)
	}
	return end.Add(longer)
}

// pendingFor notes which of the extensions somebody has asked for.
func pendingFor(q *models.Queries, actor policies.Actor, projects []int64, list []models.Extension) ([]models.Extension, error) {
	waiting, err := q.PendingExtensions(actor.User.ID, projects)
	for i := range list {
		e := &list[i]
		for _, w := range waiting {
			if w.Kind == e.Kind && at(w.ProjectID) == e.ProjectID && (e.Pending == 0 || w.RequesterID == actor.User.ID) {
				e.Pending, e.Own = w.ID, w.RequesterID == actor.User.ID
			}
		}
	}
	return list, err
}
