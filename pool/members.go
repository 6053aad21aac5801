package pool

import (
	"context"
	"errors"
	"strings"
	"time"

	"weir/models"
	"weir/policies"
)

// MemberInput gives a person a place in a project, or changes it. Email names
// the person when it is added and is ignored afterwards.
type MemberInput struct {
	Email  string     `json:"email,omitempty" maxLength:"254" doc:"the person's address"`
	RoleID int64      `json:"role_id" minimum:"1"`
	Until  *time.Time `json:"until,omitempty" doc:"participation deadline; absent: open-ended"`

	JoinedAt *time.Time `json:"joined_at,omitempty" doc:"day of joining, in UTC, not later than today; absent: today for a new member, unchanged for others"`

	Version int64 `json:"-"`
}

func (in *MemberInput) check(now time.Time) error {
	var p models.Problems
	if in.Until != nil {
		until := in.Until.UTC().Truncate(time.Microsecond)
		in.Until = &until
		checkYear("until", until, &p)
		if !until.After(now) {
			p.Add("until", "must be in the future")
		}
	}
	in.checkJoined(now, &p)
	return p.Err()
}

// anywhere is how much earlier than in UTC a day begins somewhere.
const anywhere = 14 * time.Hour

func (in *MemberInput) checkJoined(now time.Time, p *models.Problems) {
	if in.JoinedAt == nil {
		return
	}
	joined := models.Day(*in.JoinedAt)
	in.JoinedAt = &joined
	checkYear("joined_at", joined, p)
	if joined.After(now.Add(anywhere)) {
		p.Add("joined_at", "must not be later than today, %s", now.Format(time.DateOnly))
	} else if in.Until != nil && !joined.Before(*in.Until) {
		p.Add("joined_at", "must be before the participation ends")
	}
}

// AddMember gives a person a role in a project. It is refused when the peaks
// of all members would exceed the project's quota. Who was a member before
// gets the old directory back.
func (l *Ledger) AddMember(ctx context.Context, actor policies.Actor, project int64, in MemberInput) (m models.Member, err error) {
	if err := l.access.Check(actor, project, "member", "write"); err != nil {
		return m, err
	}
	if err := in.check(l.store.Now()); err != nil {
		return m, err
	}
	err = l.access.Write(ctx, l.store, actor, policies.Need{Project: project, Object: "member", Act: "write"}, func(q *models.Queries) error {
		p, err := q.LockProject(actor.Scope(), project)
		if err != nil {
			return err
		}
		m, err = l.addMember(q, actor, p, in)
		return err
	})
	if err == nil {
		l.made(ctx, l.dirs.MakeMember(ctx, project, m.ID))
	}
	return m, err
}

// addMember is AddMember within a transaction that has locked the project and
// in which the actor may.
func (l *Ledger) addMember(q *models.Queries, actor policies.Actor, p models.Project, in MemberInput) (m models.Member, err error) {
	if err := in.check(q.Now()); err != nil {
		return m, err
	}
	u, err := personAt(q, in.Email)
	if err != nil {
		return m, err
	}
	r, err := q.Role(actor.Scope(), p.ID, in.RoleID)
	if err != nil {
		return m, asField(err, models.Invalid("role_id", "is not a role of this project"))
	}
	if err := l.grantsPlace(q, actor, u.ID, r); err != nil {
		return m, err
	}
	if err := promiseFits(q, p, r.Peak, "role_id", 1); err != nil {
		return m, err
	}
	if m, err = l.enter(q, actor, u.ID, r, in); err != nil {
		return m, err
	}
	return m, actor.Audit(q, policies.Change{Action: "create", Object: "member", ID: m.ID, Project: p.ID, After: m})
}

// personAt finds who can be made a member by an address.
func personAt(q *models.Queries, email string) (models.User, error) {
	u, err := q.UserByEmail(strings.ToLower(strings.TrimSpace(email)))
	if err != nil {
		return u, asField(err, models.Invalid("email", "has no account here; an administrator can create one"))
	}
	if u.Disabled {
		return u, models.Invalid("email", "belongs to a disabled account")
	}
	return u, nil
}

// asField turns not_found into a refusal of the field that named the thing.
func asField(err error, refusal *models.Error) error {
	if models.KindOf(err) == models.KindNotFound {
		return refusal
	}
	return err
}

func (l *Ledger) enter(q *models.Queries, actor policies.Actor, user int64, r models.Role, in MemberInput) (models.Member, error) {
	joined := models.Day(q.Now())
	if in.JoinedAt != nil {
		joined = *in.JoinedAt
	}
	m, err := q.Membership(r.ProjectID, user)
	if models.KindOf(err) == models.KindNotFound {
		m = models.Member{ProjectID: r.ProjectID, UserID: user, RoleID: in.RoleID, Until: in.Until, JoinedAt: joined, Version: 1, CreatedAt: q.Now()}
		return m, q.CreateMember(&m)
	}
	if err != nil {
		return m, err
	}
	if err := mayReturn(q, m, r); err != nil {
		return m, err
	}
	if err := q.UnmarkGiven(m.ID); err != nil { // whoever gave the place before
		return m, err
	}
	m.RemovedAt, m.RoleID, m.Until, m.JoinedAt = nil, in.RoleID, in.Until, joined
	return m, putMember(q, actor, &m)
}

// mayReturn refuses to add who is a member already, or held more when the
// place ended than the new role allows.
func mayReturn(q *models.Queries, m models.Member, r models.Role) error {
	if m.RemovedAt == nil {
		e := models.Conflict("This person is a member already.")
		e.Fields = []models.Field{{Name: "email", Reason: models.Say("is a member already")}}
		return e
	}
	return heldFits(q, m, r.Peak) // what ran before may not have ended yet
}

// UpdateMember changes a member's role, deadline or day of joining, under the
// same rules.
func (l *Ledger) UpdateMember(ctx context.Context, actor policies.Actor, project, id int64, in MemberInput) (m models.Member, err error) {
	if err := l.access.Check(actor, project, "member", "write"); err != nil {
		return m, err
	}
	if err := in.check(l.store.Now()); err != nil {
		return m, err
	}
	err = l.access.Write(ctx, l.store, actor, policies.Need{Project: project, Object: "member", Act: "write"}, func(q *models.Queries) error {
		p, err := q.LockProject(actor.Scope(), project)
		if err != nil {
			return err
		}
		if m, err = q.Member(actor.Scope(), project, id); err != nil {
			return err
		}
		m, err = l.updateMember(q, actor, p, m, in)
		return err
	})
	return m, err
}

// updateMember is UpdateMember within a transaction that has locked the
// project and in which the actor may.
func (l *Ledger) updateMember(q *models.Queries, actor policies.Actor, p models.Project, m models.Member, in MemberInput) (models.Member, error) {
	if err := in.check(q.Now()); err != nil {
		return m, err
	}
	if err := models.CheckVersion("member", in.Version, m.Version); err != nil {
		return m, err
	}
	before := m
	if err := l.staysAsLong(actor, m, in.Until); err != nil {
		return m, err
	}
	if err := l.roleFits(q, actor, p, m, in.RoleID); err != nil {
		return m, err
	}
	m.RoleID, m.Until = in.RoleID, in.Until
	if in.JoinedAt != nil {
		m.JoinedAt = *in.JoinedAt
	}
	if m.Until != nil && !m.JoinedAt.Before(*m.Until) {
		return m, models.Invalid("until", "must be after the day of joining, %s", m.JoinedAt.Format(time.DateOnly))
	}
	if err := putMember(q, actor, &m); err != nil {
		return m, err
	}
	return m, actor.Audit(q, policies.Change{Action: "update", Object: "member", ID: m.ID, Project: p.ID, Before: before, After: m})
}

func (l *Ledger) roleFits(q *models.Queries, actor policies.Actor, p models.Project, m models.Member, roleID int64) error {
	old, err := q.Role(actor.Scope(), p.ID, m.RoleID)
	if err != nil {
		return err
	}
	next, err := q.Role(actor.Scope(), p.ID, roleID)
	if err != nil {
		return asField(err, models.Invalid("role_id", "is not a role of this project"))
	}
	if err := l.grantsPlace(q, actor, m.UserID, old, next); err != nil {
		return err
	}
	if err := promiseFits(q, p, next.Peak.Sub(old.Peak), "role_id", 1); err != nil {
		return err
	}
	return heldFits(q, m, next.Peak)
}

// heldFits holds rule 2 when a member is given a role.
func heldFits(q *models.Queries, m models.Member, peak models.Resources) error {
	held, err := q.HeldByMember(m.ProjectID, m.ID)
	if err != nil {
		return err
	}
	var problems models.Problems
	for _, e := range held.Exceeding(peak) {
		problems.Add("role_id", "%s: %s is held now; the role's peak is %s", e.Label,
			models.Quantity(e.Name, e.Value), models.Quantity(e.Name, e.Limit))
	}
	return capacity(problems.Err())
}

// RemoveMember ends a membership at once. The member's workspaces are stopped
// by the reconciler, its files stay.
func (l *Ledger) RemoveMember(ctx context.Context, actor policies.Actor, project, id int64) error {
	if err := l.access.Check(actor, project, "member", "write"); err != nil {
		return err
	}
	return l.access.Write(ctx, l.store, actor, policies.Need{Project: project, Object: "member", Act: "write"}, func(q *models.Queries) error {
		if _, err := q.LockProject(actor.Scope(), project); err != nil {
			return err
		}
		m, err := q.Member(actor.Scope(), project, id)
		if err != nil {
			return err
		}
		if err := l.mayEnd(q, actor, m); err != nil {
			return err
		}
		before := m
		now := q.Now()
		m.RemovedAt = &now
		if err := putMember(q, actor, &m); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "delete", Object: "member", ID: id, Project: project, Before: before})
	})
}

// MemberView is a member with names, role and what it holds now.
type MemberView struct {
	models.MemberView
	Held models.Resources
}

// Members lists a project's present members.
func (l *Ledger) Members(ctx context.Context, actor policies.Actor, project int64, page models.Page) ([]MemberView, error) {
	if err := l.access.Check(actor, project, "project", "read"); err != nil {
		return nil, err
	}
	q := l.store.Read(ctx)
	if _, err := q.Project(actor.Scope(), project); err != nil {
		return nil, err
	}
	members, err := q.Members(actor.Scope(), project, page)
	if err != nil {
		return nil, err
	}
	held, err := q.HeldByMembers(project)
	views := make([]MemberView, len(members))
	for i, m := range members {
		views[i] = MemberView{MemberView: m, Held: held[m.ID]}
	}
	return views, err
}

// Member finds one present member of a project.
func (l *Ledger) Member(ctx context.Context, actor policies.Actor, project, id int64) (v MemberView, err error) {
	if err := l.access.Check(actor, project, "project", "read"); err != nil {
		return v, err
	}
	q := l.store.Read(ctx)
	if v.MemberView, err = q.MemberView(actor.Scope(), project, id); err != nil {
		return v, err
	}
	v.Held, err = q.HeldByMember(project, id)
	return v, err
}

// Mine is one project as its member sees it.
type Mine struct {
	Project models.Project
	Member  models.MemberView
	Room    models.Room
}

// Mine lists the actor's projects with what may be held there.
func (l *Ledger) Mine(ctx context.Context, actor policies.Actor) ([]Mine, error) {
	return l.places(ctx, actor.User.ID)
}

// PlacesOf lists a person's projects, for the person and for administrators.
func (l *Ledger) PlacesOf(ctx context.Context, actor policies.Actor, user int64) ([]Mine, error) {
	if actor.User.ID != user {
		if err := l.access.Check(actor, policies.Platform, "user", "read"); err != nil {
			return nil, err
		}
	}
	return l.places(ctx, user)
}

func (l *Ledger) places(ctx context.Context, user int64) (list []Mine, err error) {
	err = l.store.Snapshot(ctx, func(q *models.Queries) error {
		list, err = placesOf(q, user)
		return err
	})
	return list, err
}

// placesOf reads all places with a fixed number of queries.
func placesOf(q *models.Queries, user int64) ([]Mine, error) {
	memberships, err := q.MembershipsOf(user, q.Now())
	if err != nil || len(memberships) == 0 {
		return nil, err
	}
	ids := make([]int64, len(memberships))
	for i, m := range memberships {
		ids[i] = m.ProjectID
	}
	projects, err1 := q.ProjectsByID(ids)
	byProject, err2 := q.HeldByProjects(ids)
	mine, err3 := q.HeldByUser(user)
	list := make([]Mine, len(memberships))
	for i, m := range memberships {
		p := projects[m.ProjectID]
		list[i] = Mine{Project: p, Member: m, Room: models.Room{Quota: p.Quota, HeldByProject: byProject[p.ID], Peak: m.Peak, HeldByMember: mine[m.ID]}}
	}
	return list, errors.Join(err1, err2, err3)
}

// roomOf reads what is held in one statement: a workspace may end at any
// moment, the project's lock or not, and the two sums belong together.
func roomOf(q *models.Queries, p models.Project, member int64, peak models.Resources) (models.Room, error) {
	held, err := q.HeldByMembers(p.ID)
	r := models.Room{Quota: p.Quota, Peak: peak, HeldByMember: held[member]}
	for _, h := range held {
		r.HeldByProject = r.HeldByProject.Add(h)
	}
	return r, err
}

// Room is what a present member may still hold. Inside a transaction that
// has locked the project it stays true until the commit.
func (l *Ledger) Room(q *models.Queries, project models.Project, member int64) (models.Room, error) {
	v, err := q.MemberView(models.Everything, project.ID, member)
	if err != nil {
		return models.Room{}, err
	}
	return roomOf(q, project, member, v.Peak)
}
