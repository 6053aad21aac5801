package projects

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// MemberInput describes a membership, to create or to change it. Email identifies
// the user of a new one, and is ignored otherwise.
type MemberInput struct {
	Email  string     `json:"email,omitempty" maxLength:"254" doc:"email address"`
	RoleID int64      `json:"role_id" minimum:"1"`
	Until  *time.Time `json:"until,omitempty" doc:"end of the membership; absent if open-ended"`

	JoinedAt *time.Time `json:"joined_at,omitempty" doc:"date of joining in UTC, not in the future; default today for a new member, otherwise unchanged"`

	Version int64 `json:"-"`
}

// Check validates and normalizes the input.
func (in *MemberInput) Check(now time.Time) error {
	var p models.Problems
	checkUntil(&in.Until, now, &p)
	in.checkJoined(now, &p)
	return p.Err()
}

// checkUntil checks the end of a membership.
func checkUntil(until **time.Time, now time.Time, p *models.Problems) {
	if normalizeTime("until", until, p); *until != nil && !(*until).After(now) {
		p.Add("until", "must be in the future")
	}
}

// normalizeTime truncates an optional time to the precision of the databases.
func normalizeTime(field string, t **time.Time, p *models.Problems) {
	if *t != nil {
		normal := (*t).UTC().Truncate(time.Microsecond)
		*t = &normal
		models.CheckYear(field, normal, p)
	}
}

// maxUTCOffset is how much earlier than in UTC a day can begin.
const maxUTCOffset = 14 * time.Hour

func (in *MemberInput) checkJoined(now time.Time, p *models.Problems) {
	if in.JoinedAt == nil {
		return
	}
	joined := models.Day(*in.JoinedAt)
	in.JoinedAt = &joined
	models.CheckYear("joined_at", joined, p)
	if joined.After(now.Add(maxUTCOffset)) {
		p.Add("joined_at", "must not be later than today, %s", now.Format(time.DateOnly))
	} else if in.Until != nil && !joined.Before(*in.Until) {
		p.Add("joined_at", "must be before the end of the membership")
	}
}

// AddMember adds a member. It is refused if the sum of the limits would exceed the
// quota. A former member gets the same directory again.
func (s *Service) AddMember(ctx context.Context, actor policies.Actor, project int64, in MemberInput) (m models.Member, err error) {
	err = s.edit(ctx, actor, project, policies.MemberWrite, func(e Editor, p models.Project) (err error) {
		m, err = e.AddMember(p, in)
		return err
	})
	if err == nil {
		s.MakeMemberDirectory(ctx, project, m.ID)
	}
	return m, err
}

// AddMember adds a member to a project.
func (e Editor) AddMember(p models.Project, in MemberInput) (m models.Member, err error) {
	if err := in.Check(e.q.Now()); err != nil {
		return m, err
	}
	u, err := e.q.PersonByEmail(in.Email)
	if err != nil {
		return m, err
	}
	r, err := e.q.Role(e.actor.Scope(), p.ID, in.RoleID)
	if err != nil {
		return m, models.NotFoundAs(err, roleNotFound())
	}
	if err := e.checkNewMember(p, u.ID, r); err != nil {
		return m, err
	}
	return e.addMember(u.ID, r, in)
}

// checkNewMember refuses a member with more permissions than the actor, or whose limit
// does not fit into the quota.
func (e Editor) checkNewMember(p models.Project, user int64, r models.Role) error {
	if err := e.grantsMembership(user, r); err != nil {
		return err
	}
	return checkAllocated(e.q, p, r.Limit, 1)
}

// addMember adds a member after the checks.
func (e Editor) addMember(user int64, r models.Role, in MemberInput) (models.Member, error) {
	m, err := e.join(user, r, in)
	if err != nil {
		return m, err
	}
	return m, e.actor.Audit(e.q, policies.Change{Action: "create", Object: "member", ID: m.ID, Project: r.ProjectID, After: m})
}

func roleNotFound() *models.Error {
	return models.Invalid("role_id", "is not a role of this project")
}

// join creates a membership, or renews a former one.
func (e Editor) join(user int64, r models.Role, in MemberInput) (models.Member, error) {
	joined := models.Day(e.q.Now())
	if in.JoinedAt != nil {
		joined = *in.JoinedAt
	}
	m, err := e.q.Membership(r.ProjectID, user)
	if models.KindOf(err) == models.KindNotFound {
		m = models.Member{ProjectID: r.ProjectID, UserID: user, RoleID: in.RoleID, Until: in.Until, JoinedAt: joined, Version: 1,
			CreatedAt: e.q.Now()}
		return m, e.q.CreateMember(&m)
	}
	if err != nil {
		return m, err
	}
	if err := checkRejoin(e.q, m, r); err != nil {
		return m, err
	}
	if err := e.q.UnmarkGrantedByIdentity(m.ID); err != nil { // it is no longer from a group
		return m, err
	}
	m.RemovedAt, m.RoleID, m.Until, m.JoinedAt = nil, in.RoleID, in.Until, joined
	return m, e.putMember(&m)
}

// checkRejoin refuses to add a current member, and a former one whose use exceeds the
// new role's limit.
func checkRejoin(q *store.Queries, m models.Member, r models.Role) error {
	if m.RemovedAt == nil {
		e := models.Conflict("This person is already a member.")
		e.Fields = []models.Field{{Name: "email", Reason: models.Say("is already a member")}}
		return e
	}
	return checkUse(q, m, r.Limit) // former workspaces may still be stopping
}

// UpdateMember changes a member's role, end date or join date, under the rules of
// AddMember.
func (s *Service) UpdateMember(ctx context.Context, actor policies.Actor, project, id int64, in MemberInput) (m models.Member, err error) {
	err = s.edit(ctx, actor, project, policies.MemberWrite, func(e Editor, p models.Project) error {
		before, err := e.q.Member(actor.Scope(), project, id)
		if err != nil {
			return err
		}
		m, err = e.UpdateMember(p, before, in)
		return err
	})
	return m, err
}

// UpdateMember changes a member of a project.
func (e Editor) UpdateMember(p models.Project, m models.Member, in MemberInput) (models.Member, error) {
	if err := in.Check(e.q.Now()); err != nil {
		return m, err
	}
	if err := models.CheckVersion("member", in.Version, m.Version); err != nil {
		return m, err
	}
	before := m
	if err := e.checkEndNotLater(m, in.Until); err != nil {
		return m, err
	}
	if err := e.checkRoleChange(p, m, in.RoleID); err != nil {
		return m, err
	}
	m.RoleID, m.Until = in.RoleID, in.Until
	if in.JoinedAt != nil {
		m.JoinedAt = *in.JoinedAt
	}
	if m.Until != nil && !m.JoinedAt.Before(*m.Until) {
		return m, models.Invalid("until", "must be after the join date, %s", m.JoinedAt.Format(time.DateOnly))
	}
	if err := e.putMember(&m); err != nil {
		return m, err
	}
	return m, e.actor.Audit(e.q, policies.Change{Action: "update", Object: "member", ID: m.ID, Project: p.ID, Before: before, After: m})
}

// checkRoleChange refuses a role that a member cannot have.
func (e Editor) checkRoleChange(p models.Project, m models.Member, roleID int64) error {
	old, err := e.q.Role(e.actor.Scope(), p.ID, m.RoleID)
	if err != nil {
		return err
	}
	next, err := e.q.Role(e.actor.Scope(), p.ID, roleID)
	if err != nil {
		return models.NotFoundAs(err, roleNotFound())
	}
	if err := e.grantsMembership(m.UserID, old, next); err != nil {
		return err
	}
	if err := checkAllocated(e.q, p, next.Limit.Sub(old.Limit), 1); err != nil {
		return err
	}
	return checkUse(e.q, m, next.Limit)
}

// RemoveMember ends a membership. The reconciler stops the member's workspaces;
// files are kept.
func (s *Service) RemoveMember(ctx context.Context, actor policies.Actor, project, id int64) error {
	return s.edit(ctx, actor, project, policies.MemberWrite, func(e Editor, _ models.Project) error {
		m, err := e.q.Member(actor.Scope(), project, id)
		if err != nil {
			return err
		}
		if err := e.checkCanEnd(m); err != nil {
			return err
		}
		return e.endMembership(m)
	})
}

// endMembership ends a membership now, and revokes the tokens of a service account.
func (e Editor) endMembership(m models.Member) error {
	before, now := m, e.q.Now()
	m.RemovedAt = &now
	if err := e.putMember(&m); err != nil {
		return err
	}
	u, err := e.q.User(m.UserID)
	if err == nil && u.IsService() {
		err = e.q.DeleteTokensOf(u.ID)
	}
	if err != nil {
		return err
	}
	return e.actor.Audit(e.q, policies.Change{Action: "delete", Object: "member", ID: m.ID, Project: m.ProjectID, Before: before})
}

// MemberView is a member with its current use.
type MemberView struct {
	models.MemberView
	InUse models.Resources
}

// Members lists a project's current members.
func (s *Service) Members(ctx context.Context, actor policies.Actor, project int64, page store.Page) ([]MemberView, error) {
	if err := s.access.Check(actor, project, policies.ProjectRead); err != nil {
		return nil, err
	}
	q := s.store.Read(ctx)
	members, err := q.Members(actor.Scope(), project, page)
	if err == nil && len(members) == 0 {
		_, err = q.Project(actor.Scope(), project)
	}
	if err != nil {
		return nil, err
	}
	inUse, err := q.InUseByMembers(project)
	views := models.Map(members, func(m models.MemberView) MemberView { return MemberView{MemberView: m, InUse: inUse[m.ID]} })
	return views, err
}

// Member finds a current member of a project.
func (s *Service) Member(ctx context.Context, actor policies.Actor, project, id int64) (v MemberView, err error) {
	if err := s.access.Check(actor, project, policies.ProjectRead); err != nil {
		return v, err
	}
	q := s.store.Read(ctx)
	if v.MemberView, err = q.MemberView(actor.Scope(), project, id); err != nil {
		return v, err
	}
	v.InUse, err = q.InUseByMember(project, id)
	return v, err
}
