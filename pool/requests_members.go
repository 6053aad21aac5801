package pool

import (
	"context"

	"weir/models"
	"weir/policies"
)

// within is what wishes about roles and members have in common: they take of
// a quota that is promised already.
type within struct{}

func (within) growth(*hearing) models.Resources { return models.Resources{} }

// roleWish is a request for a new role.
type roleWish struct {
	within
	*models.AskRole
}

func (a roleWish) input() RoleInput {
	return RoleInput{Name: a.Name, Permission: a.Permission, Permissions: a.Permissions, Peak: a.Peak}
}

func (a roleWish) examine(h *hearing) error {
	in := a.input()
	if err := in.check(); err != nil {
		return err
	}
	a.Name = in.Name
	if a.Mine {
		_, err := h.place()
		return asField(err, models.Invalid("mine", "is only for members of the project"))
	}
	return nil
}

// place is the present membership of who asked.
func (h *hearing) place() (models.Member, error) {
	m, err := h.q.Membership(h.project.ID, h.requester.ID)
	if err == nil && m.RemovedAt != nil {
		err = models.NotFound("member")
	}
	return m, err
}

func (a roleWish) grant(h *hearing) error {
	role, err := h.ledger.createRole(h.q, h.actor, h.project, a.input())
	if err != nil || !a.Mine {
		return err
	}
	m, err := h.place()
	if err != nil {
		return err
	}
	_, err = h.ledger.updateMember(h.q, h.actor, h.project, m, MemberInput{RoleID: role.ID, Until: m.Until})
	return under("", err, "role_id", "mine", "until", "mine")
}

// peakWish is a request for another peak of a role.
type peakWish struct {
	within
	*models.AskPeak
}

func (a peakWish) role(h *hearing) (models.Role, error) {
	r, err := h.q.Role(models.Everything, h.project.ID, a.RoleID)
	return r, asField(err, models.Invalid("role_id", "is not a role of this project"))
}

func (a peakWish) examine(h *hearing) error {
	var p models.Problems
	a.Peak.Check("peak", &p)
	r, err := a.role(h)
	if err = joined(p, err); err != nil || !h.asking {
		return err
	}
	return moreThan("peak", a.Peak, r.Peak)
}

func (a peakWish) grant(h *hearing) error {
	r, err := a.role(h)
	if err != nil {
		return err
	}
	in := roleInputOf(r)
	in.Peak = a.Peak
	_, err = h.ledger.updateRole(h.q, h.actor, h.project, r, in)
	return under("", err, "permission", "role_id")
}

// deadlineWish is a request for a later end of one's own participation.
type deadlineWish struct {
	within
	*models.AskDeadline
}

func (a deadlineWish) examine(h *hearing) error {
	in := MemberInput{Until: a.Until}
	if err := in.check(h.q.Now()); err != nil {
		return err
	}
	m, err := h.place()
	if err != nil {
		return asField(err, models.Invalid("until", "is of somebody who is not a member any more"))
	}
	if h.asking && !later(a.Until, m.Until) {
		return models.Invalid("until", "must be later than it is now")
	}
	return nil
}

func (a deadlineWish) grant(h *hearing) error {
	m, err := h.place()
	if err != nil {
		return err
	}
	_, err = h.ledger.updateMember(h.q, h.actor, h.project, m, MemberInput{RoleID: m.RoleID, Until: a.Until})
	return under("", err, "role_id", "until")
}

// joinWish is a request for a place in a project.
type joinWish struct {
	within
	*models.AskJoin
}

func (a joinWish) examine(h *hearing) error {
	in := MemberInput{Until: a.Until}
	if err := in.check(h.q.Now()); err != nil {
		return err
	}
	if !h.asking && a.RoleID == 0 {
		return models.Invalid("role_id", "must be chosen by who decides")
	}
	if _, err := h.place(); models.KindOf(err) != models.KindNotFound {
		if err == nil && h.asking {
			err = models.Invalid("name", "is a project in which you have a place already")
		}
		return err
	}
	return nil
}

func (a joinWish) grant(h *hearing) error {
	m, err := h.ledger.addMember(h.q, h.actor, h.project, MemberInput{Email: h.requester.Email, RoleID: a.RoleID, Until: a.Until})
	h.member = m.ID
	return under("", err, "email", "role_id")
}

// LetAsk sets whether people who are not in a project may ask to join it by
// its name; its managers may.
func (r *Requests) LetAsk(ctx context.Context, actor policies.Actor, project int64, on bool) error {
	l := r.ledger
	if err := l.access.Check(actor, project, "member", "write"); err != nil {
		return err
	}
	return l.access.Write(ctx, l.store, actor, policies.Need{Project: project, Object: "member", Act: "write"}, func(q *models.Queries) error {
		p, err := q.LockProject(actor.Scope(), project)
		if err != nil || p.AskToJoin == on {
			return err
		}
		before := p
		p.AskToJoin = on
		if err := q.UpdateProject(&p); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "update", Object: "project", ID: project, Project: project, Before: before, After: p})
	})
}

// Joinable tells the name of a project that may be asked for a place, by the
// number in its link.
func (r *Requests) Joinable(ctx context.Context, actor policies.Actor, project int64) (models.Project, error) {
	if err := r.ledger.access.Check(actor, policies.Platform, "request", "ask"); err != nil {
		return models.Project{}, err
	}
	p, err := r.ledger.store.Read(ctx).ProjectToJoin(project, "")
	return models.Project{ID: p.ID, Name: p.Name}, err
}

// Place is the actor's own membership in a project, also after its deadline,
// and the project's id and name.
func (r *Requests) Place(ctx context.Context, actor policies.Actor, project int64) (models.Member, models.Project, error) {
	if err := r.ledger.access.Check(actor, policies.Platform, "request", "ask"); err != nil {
		return models.Member{}, models.Project{}, err
	}
	h := hearing{q: r.ledger.store.Read(ctx), actor: actor, asking: true, requester: actor.User,
		terms: models.Asked{Deadline: &models.AskDeadline{ProjectID: project}}}
	if err := h.open(); err != nil {
		return models.Member{}, models.Project{}, err
	}
	m, err := h.place()
	return m, models.Project{ID: h.project.ID, Name: h.project.Name}, err
}
