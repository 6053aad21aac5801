package pool

import (
	"time"

	"weir/models"
)

// projectWish is a request for a new project. Who asked becomes its owner.
type projectWish struct{ *models.AskProject }

func (a projectWish) input() ProjectInput {
	return ProjectInput{Name: a.Name, Description: a.Description, Quota: a.Quota, StartsAt: a.StartsAt, EndsAt: a.EndsAt}
}

func (a projectWish) examine(h *hearing) error {
	in := a.input()
	err := in.check(h.q.Now())
	var p models.Problems
	a.Peak.Check("peak", &p)
	if err = joined(p, err); err != nil {
		return err
	}
	a.Name, a.Description = in.Name, in.Description
	return peakWithin(a.Peak, a.Quota)
}

func (a projectWish) growth(h *hearing) models.Resources {
	return standing(a.Quota, a.EndsAt, h.q.Now())
}

// standing is a quota as long as its period of use is not over.
func standing(quota models.Resources, ends *time.Time, now time.Time) models.Resources {
	if ends != nil && !ends.After(now) {
		return models.Resources{}
	}
	return quota
}

func (a projectWish) grant(h *hearing) (err error) {
	if h.project, err = h.ledger.createProject(h.q, h.actor, a.input()); err != nil {
		return err
	}
	if err := h.q.NameProjectOf(&h.req, h.project.ID); err != nil {
		return err
	}
	role, err := h.ledger.createRole(h.q, h.actor, h.project, RoleInput{Name: "owner", Permission: models.PermissionOwner, Peak: a.Peak})
	if err != nil {
		return err
	}
	m, err := h.ledger.addMember(h.q, h.actor, h.project, MemberInput{Email: h.requester.Email, RoleID: role.ID})
	h.member = m.ID
	return err
}

// inputOf is a project as it is, to change one thing of it.
func inputOf(p models.Project) ProjectInput {
	return ProjectInput{Name: p.Name, Description: p.Description, Quota: p.Quota, StartsAt: &p.StartsAt, EndsAt: p.EndsAt,
		Launch: p.Launch, Priority: p.Priority}
}

// quotaWish is a request for another quota of a project.
type quotaWish struct{ *models.AskQuota }

func (a quotaWish) examine(h *hearing) error {
	var p models.Problems
	a.Quota.Check("quota", &p)
	if err := p.Err(); err != nil || !h.asking {
		return err
	}
	return moreThan("quota", a.Quota, h.project.Quota)
}

func (a quotaWish) growth(h *hearing) models.Resources {
	return standing(a.Quota.Sub(h.project.Quota), h.project.EndsAt, h.q.Now())
}

func (a quotaWish) grant(h *hearing) error {
	in := inputOf(h.project)
	in.Quota = a.Quota
	_, err := h.ledger.updateProject(h.q, h.actor, h.project, in)
	return err
}

// periodWish is a request for a later end of a project.
type periodWish struct{ *models.AskPeriod }

func (a periodWish) input(h *hearing) ProjectInput {
	in := inputOf(h.project)
	in.EndsAt = a.EndsAt
	return in
}

func (a periodWish) examine(h *hearing) error {
	in := a.input(h)
	if err := in.check(h.q.Now()); err != nil {
		return err
	}
	if a.EndsAt != nil && !a.EndsAt.After(h.q.Now()) {
		return models.Invalid("ends_at", "must be in the future")
	}
	if h.asking && !later(a.EndsAt, h.project.EndsAt) {
		return models.Invalid("ends_at", "must be later than it is now")
	}
	return nil
}

func (a periodWish) growth(h *hearing) models.Resources {
	now := h.q.Now()
	return standing(h.project.Quota, a.EndsAt, now).Sub(standing(h.project.Quota, h.project.EndsAt, now))
}

func (a periodWish) grant(h *hearing) error {
	_, err := h.ledger.updateProject(h.q, h.actor, h.project, a.input(h))
	return err
}
