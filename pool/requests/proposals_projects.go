package requests

import (
	"time"

	"weir/models"
	"weir/pool/projects"
)

// projectProposal is a request for a new project, owned by the requester.
type projectProposal struct{ *models.ProjectSpec }

func (a projectProposal) input() projects.ProjectInput {
	return projects.ProjectInput{Name: a.Name, Description: a.Description, Quota: a.Quota, StartsAt: a.StartsAt, EndsAt: a.EndsAt}
}

func (a projectProposal) check(now time.Time) error {
	in := a.input()
	err := in.Check(now)
	a.Name, a.Description = in.Name, in.Description
	var p models.Problems
	a.Limit.Check("limit", &p)
	return joined(p, err)
}

func (a projectProposal) examine(r *review) error {
	if err := a.check(r.q.Now()); err != nil {
		return err
	}
	total, _, err := r.editor.FillQuota(a.Quota, models.Project{})
	if err != nil {
		return err
	}
	limit, _ := projects.FillLimit(a.Limit, total, models.AllPermissions)
	a.Quota, a.Limit = total.Input(), limit.Input()
	return projects.CheckLimit(limit, total)
}

func (a projectProposal) proposed(models.Project) models.Project {
	return models.Project{Quota: a.Quota.Resources(), EndsAt: a.EndsAt}
}

func (a projectProposal) apply(r *review) (err error) {
	in := a.input()
	in.Confirmation = r.confirmation
	if r.project, err = r.editor.CreateProject(in); err != nil {
		return err
	}
	if err := r.q.SetRequestProject(&r.req, r.project.ID); err != nil {
		return err
	}
	role, err := r.editor.CreateRole(r.project, projects.RoleInput{Name: "owner", Permission: models.PermissionOwner, Limit: a.Limit})
	if err != nil {
		return err
	}
	m, err := r.editor.AddMember(r.project, projects.MemberInput{Email: r.requester.Email, RoleID: role.ID})
	r.member = m.ID
	return err
}

// quotaProposal is a request for another quota of a project.
type quotaProposal struct{ *models.QuotaSpec }

func (a quotaProposal) check(time.Time) error {
	var p models.Problems
	a.Quota.Check("quota", &p)
	return p.Err()
}

func (a quotaProposal) examine(r *review) error {
	if err := a.check(r.q.Now()); err != nil {
		return err
	}
	total, _, err := r.editor.FillQuota(a.Quota, r.project)
	if !r.submitting {
		total = projects.AsRequested(total, r.project.Quota, r.req.Requested.Quota.Quota, r.req.Baseline)
	}
	if a.Quota = total.Input(); err != nil {
		return err
	}
	return r.checkRaised("quota", total, r.project.Quota)
}

func (a quotaProposal) proposed(p models.Project) models.Project {
	p.Quota = a.Quota.Resources()
	return p
}

func (a quotaProposal) apply(r *review) error {
	in := projects.InputOf(r.project)
	in.Quota, in.Confirmation = a.Quota, r.confirmation
	_, err := r.editor.UpdateProject(r.project, in)
	return err
}

// periodProposal is a request for a later end of a project.
type periodProposal struct{ *models.PeriodSpec }

func (a periodProposal) input(r *review) projects.ProjectInput {
	in := projects.InputOf(r.project)
	in.EndsAt = a.EndsAt
	return in
}

// check leaves the end to examine, which knows when the project began.
func (a periodProposal) check(time.Time) error { return nil }

func (a periodProposal) examine(r *review) error {
	in := a.input(r)
	if err := in.Check(r.q.Now()); err != nil {
		return err
	}
	if a.EndsAt != nil && !a.EndsAt.After(r.q.Now()) {
		return models.Invalid("ends_at", "must be in the future")
	}
	if !endsLater(r, a.EndsAt, r.project.EndsAt) {
		return models.Invalid("ends_at", "must be later than the current date")
	}
	return nil
}

func (a periodProposal) proposed(p models.Project) models.Project {
	p.EndsAt = a.EndsAt
	return p
}

func (a periodProposal) apply(r *review) error {
	in := a.input(r)
	in.Confirmation = r.confirmation
	_, err := r.editor.UpdateProject(r.project, in)
	return err
}
