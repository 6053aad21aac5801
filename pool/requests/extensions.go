package requests

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/projects"
)

// extension is how much later the end of a suggested extension is.
const extension = 30 * oneDay

// Extensions lists the extensions that the actor can request in some projects: of
// periods of use and of the actor's memberships that end soon or have ended.
func (s *Service) Extensions(ctx context.Context, actor policies.Actor, ids []int64) ([]models.Extension, error) {
	if actor.User.ID == 0 || len(ids) == 0 {
		return nil, nil
	}
	q := s.store.Read(ctx)
	visible, err := q.ProjectsOf(actor.Scope(), ids)
	if err != nil {
		return nil, err
	}
	memberships, err := q.MembershipsIn(actor.User.ID, ids)
	if err != nil {
		return nil, err
	}
	return s.extensions(q, actor, visible, memberships)
}

// ExtensionsIn is Extensions for memberships of the actor that were read just now.
func (s *Service) ExtensionsIn(ctx context.Context, actor policies.Actor, list []projects.Membership) ([]models.Extension, error) {
	visible, memberships := make([]models.Project, len(list)), make([]store.ProjectMember, len(list))
	for i, p := range list {
		visible[i], memberships[i] = p.Project, store.ProjectMember{Member: p.Member.Member, ProjectName: p.Project.Name}
	}
	return s.extensions(s.store.Read(ctx), actor, visible, memberships)
}

func (s *Service) extensions(q *store.Queries, actor policies.Actor, visible []models.Project,
	memberships []store.ProjectMember) ([]models.Extension, error) {
	now := q.Now()
	var list []models.Extension
	for _, p := range visible {
		if near(p.EndsAt, now) && s.canExtend(actor, p.ID) {
			list = append(list, models.Extension{Kind: models.RequestPeriod, ProjectID: p.ID, Project: p.Name, EndsAt: *p.EndsAt,
				Later: laterThan(*p.EndsAt, now), Direct: s.access.May(actor, p.ID, policies.ProjectWrite),
				Reason: models.Say("The work continues after the project's period of use ends.")})
		}
	}
	for _, m := range memberships {
		if near(m.Until, now) {
			list = append(list, models.Extension{Kind: models.RequestDeadline, ProjectID: m.ProjectID, Project: m.ProjectName, MemberID: m.ID,
				EndsAt: *m.Until, Later: laterThan(*m.Until, now), Direct: s.access.May(actor, m.ProjectID, policies.ProjectWrite),
				Reason: models.Say("My work continues after my membership ends.")})
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return pendingFor(q, actor, list)
}

// canExtend reports whether the actor can request or make an extension of a project.
func (s *Service) canExtend(actor policies.Actor, project int64) bool {
	return actor.MemberOf(project) || s.access.May(actor, project, policies.ProjectWrite)
}

// near reports whether an end has been notified of.
func near(end *time.Time, now time.Time) bool { return end != nil && end.Sub(now) <= firstNotification }

// laterThan is the end of an extension: 30 days after the present end, or after
// tomorrow if that is over.
func laterThan(end, now time.Time) time.Time {
	if end.Before(now) {
		end = now.Truncate(oneDay).Add(oneDay)
	}
	return end.Add(extension)
}

// pendingFor adds the pending requests to the extensions.
func pendingFor(q *store.Queries, actor policies.Actor, list []models.Extension) ([]models.Extension, error) {
	projects := models.Map(list, func(e models.Extension) int64 { return e.ProjectID })
	pending, err := q.PendingExtensions(actor.User.ID, projects)
	for i := range list {
		e := &list[i]
		for _, w := range pending {
			if w.Kind == e.Kind && idOrZero(w.ProjectID) == e.ProjectID && (e.Pending == 0 || w.RequesterID == actor.User.ID) {
				e.Pending, e.Own = w.ID, w.RequesterID == actor.User.ID
			}
		}
	}
	return list, err
}
