package requests

import (
	"time"

	"weir/models"
	"weir/pool/projects"
)

// projectProposal is a request for a new project. Who asked becomes its owner.
type projectProposal struct{ *models.AskProject }

func (a projectProposal) input() projects.ProjectInput {
	return projects.ProjectInput{Name: a.Name, Description: a.Description, Quota: a.Quota, StartsAt: a.StartsAt, EndsAt: a.EndsAt}
}

func (a projectProposal) examine(h *review) error {
	in := a.input()
	err := in.Check(h.q.Now())
	var p models.Problems
	a.Peak.Check("peak", &p)
	if err = joined(p, err); err != nil {
		return err
	}
	a.Name, a.Description = in.Name, in.Description
	return projects.CheckLimit(a.Peak, a.Quota)
}

func (a projectProposal) growth(h *review) models.Resources {
	return standing(a.Quota, a.EndsAt, h.q.Now())
}

// standing is a quota as long as its period of use is not over.
func standing(quota models.Resources, ends *time.Time, now time.Time) models.Resources {
	if ends != nil && !ends.After(now) {
		return models.Resources{}
	}
	return quota
}

func (a projectProposal) apply(h *review) (err error) {
	if h.project, err = h.edit.CreateProject(a.input()); err != nil {
		return err
	}
	if err := h.q.NameProjectOf(&h.req, h.project.ID); err != nil {
		return err
	}
	role, err := h.edit.CreateRole(h.project, projects.RoleInput{Name: "owner", Permission: models.PermissionOwner, Peak: a.Peak})
	if err != nil {
		return err
	}
	m, err := h.edit.AddMember(h.project, projects.MemberInput{Email: h.requester.Email, RoleID: role.ID})
	h.member = m.ID
	return err
}

// quotaProposal is a request for another quota of a project.
type quotaProposal struct{ *models.AskQuota }

func (a quotaProposal) examine(h *review) error {
	var p models.Problems
	a.Quota.Check("quota", &p)
	if err := p.Err(); err != nil || !h.asking {
		return err
	}
	return moreThan("quota", a.Quota, h.project.Quota)
}

func (a quotaProposal) growth(h *review) models.Resources {
	return standing(a.Quota.Sub(h.project.Quota), h.project.EndsAt, h.q.Now())
}

func (a quotaProposal) apply(h *review) error {
	in := projects.InputOf(h.project)
	in.Quota = a.Quota
	_, err := h.edit.UpdateProject(h.project, in)
	return err
}

// periodProposal is a request for a later end of a project.
type periodProposal struct{ *models.AskPeriod }

func (a periodProposal) input(h *review) projects.ProjectInput {
	in := projects.InputOf(h.project)
	in.EndsAt = a.EndsAt
	return in
}

func (a periodProposal) examine(h *review) error {
	in := a.input(h)
	if err := in.Check(h.q.Now()); err != nil {
		return err
	}
	if a.EndsAt != nil && !a.EndsAt.After(h.q.Now()) {
		return models.Invalid("ends_at", "must be in the future")
	}
	if h.asking && !projects.EndsLater(a.EndsAt, h.project.EndsAt) {
		return models.Invalid("ends_at", "must be later than it is now")
	}
	return nil
}

func (a periodProposal) growth(h *review) models.Resources {
	now := h.q.Now()
	return standing(h.project.Quota, a.EndsAt, now).Sub(standing(h.project.Quota, h.project.EndsAt, now))
}

func (a periodProposal) apply(h *review) error {
	_, err := h.edit.UpdateProject(h.project, a.input(h))
	return err
}
