package requests

import (
	"weir/models"
	"weir/pool/projects"
)

// within is what wishes about roles and members have in common: they take of
// a quota that is allocated already.
type within struct{}

func (within) growth(*review) models.Resources { return models.Resources{} }

// roleProposal is a request for a new role.
type roleProposal struct {
	within
	*models.AskRole
}

func (a roleProposal) input() projects.RoleInput {
	return projects.RoleInput{Name: a.Name, Permission: a.Permission, Permissions: a.Permissions, Peak: a.Peak}
}

func (a roleProposal) examine(h *review) error {
	in := a.input()
	if err := in.Check(); err != nil {
		return err
	}
	a.Name = in.Name
	if a.Mine {
		_, err := h.place()
		return models.NotFoundAs(err, models.Invalid("mine", "is only for members of the project"))
	}
	return nil
}

// place is the present membership of who asked.
func (h *review) place() (models.Member, error) {
	m, err := h.q.Membership(h.project.ID, h.requester.ID)
	if err == nil && m.RemovedAt != nil {
		err = models.NotFound("member")
	}
	return m, err
}

func (a roleProposal) apply(h *review) error {
	role, err := h.edit.CreateRole(h.project, a.input())
	if err != nil || !a.Mine {
		return err
	}
	m, err := h.place()
	if err != nil {
		return err
	}
	_, err = h.edit.UpdateMember(h.project, m, projects.MemberInput{RoleID: role.ID, Until: m.Until})
	return under("", err, "role_id", "mine", "until", "mine")
}

// limitProposal is a request for another peak of a role.
type limitProposal struct {
	within
	*models.AskPeak
}

func (a limitProposal) role(h *review) (models.Role, error) {
	r, err := h.q.Role(models.Everything, h.project.ID, a.RoleID)
	return r, models.NotFoundAs(err, models.Invalid("role_id", "is not a role of this project"))
}

func (a limitProposal) examine(h *review) error {
	var p models.Problems
	a.Peak.Check("peak", &p)
	r, err := a.role(h)
	if err = joined(p, err); err != nil || !h.asking {
		return err
	}
	return moreThan("peak", a.Peak, r.Peak)
}

func (a limitProposal) apply(h *review) error {
	r, err := a.role(h)
	if err != nil {
		return err
	}
	in := projects.RoleInputOf(r)
	in.Peak = a.Peak
	_, err = h.edit.UpdateRole(h.project, r, in)
	return under("", err, "permission", "role_id")
}

// deadlineProposal is a request for a later end of one's own participation.
type deadlineProposal struct {
	within
	*models.AskDeadline
}

func (a deadlineProposal) examine(h *review) error {
	in := projects.MemberInput{Until: a.Until}
	if err := in.Check(h.q.Now()); err != nil {
		return err
	}
	m, err := h.place()
	if err != nil {
		return models.NotFoundAs(err, models.Invalid("until", "is of somebody who is not a member any more"))
	}
	if h.asking && !projects.EndsLater(a.Until, m.Until) {
		return models.Invalid("until", "must be later than it is now")
	}
	return nil
}

func (a deadlineProposal) apply(h *review) error {
	m, err := h.place()
	if err != nil {
		return err
	}
	_, err = h.edit.UpdateMember(h.project, m, projects.MemberInput{RoleID: m.RoleID, Until: a.Until})
	return under("", err, "role_id", "until")
}

// joinProposal is a request for a place in a project.
type joinProposal struct {
	within
	*models.AskJoin
}

func (a joinProposal) examine(h *review) error {
	in := projects.MemberInput{Until: a.Until}
	if err := in.Check(h.q.Now()); err != nil {
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

func (a joinProposal) apply(h *review) error {
	m, err := h.edit.AddMember(h.project, projects.MemberInput{Email: h.requester.Email, RoleID: a.RoleID, Until: a.Until})
	h.member = m.ID
	return under("", err, "email", "role_id")
}
