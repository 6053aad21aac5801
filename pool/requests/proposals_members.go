package requests

import (
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
)

// sameQuota is embedded in proposals that do not change quotas.
type sameQuota struct{}

func (sameQuota) proposed(p models.Project) models.Project { return p }

// roleProposal is a request for a new role.
type roleProposal struct {
	sameQuota
	*models.RoleSpec
}

func (a roleProposal) input() projects.RoleInput {
	return projects.RoleInput{Name: a.Name, Permission: a.Permission, Permissions: a.Permissions, Limit: a.Limit}
}

func (a roleProposal) check(time.Time) error {
	in := a.input()
	return in.Check()
}

func (a roleProposal) examine(r *review) error {
	in := a.input()
	if err := in.Check(); err != nil {
		return err
	}
	a.Name, a.Limit = in.Name, in.FilledLimit(r.project).Input()
	if a.AssignToRequester {
		_, err := r.membership()
		return models.NotFoundAs(err, models.Invalid("assign_to_requester", "is available only to members of the project"))
	}
	return nil
}

func (a roleProposal) apply(r *review) error {
	role, err := r.editor.CreateRole(r.project, a.input())
	if err != nil || !a.AssignToRequester {
		return err
	}
	m, err := r.membership()
	if err != nil {
		return err
	}
	_, err = r.editor.UpdateMember(r.project, m, projects.MemberInput{RoleID: role.ID, Until: m.Until})
	return prefixed("", err, "role_id", "assign_to_requester", "until", "assign_to_requester")
}

// limitProposal is a request for another limit of a role.
type limitProposal struct {
	sameQuota
	*models.LimitSpec
}

func (a limitProposal) role(r *review) (models.Role, error) {
	role, err := r.q.Role(store.AllProjects, r.project.ID, a.RoleID)
	return role, models.NotFoundAs(err, models.Invalid("role_id", "is not a role of this project"))
}

func (a limitProposal) problems() (p models.Problems) {
	a.Limit.Check("limit", &p)
	return p
}

func (a limitProposal) check(time.Time) error {
	p := a.problems()
	return p.Err()
}

func (a limitProposal) examine(r *review) error {
	role, err := a.role(r)
	if err = joined(a.problems(), err); err != nil {
		return err
	}
	limit, _ := projects.FillLimit(a.Limit, r.project.Quota, role.Permits())
	if !r.submitting {
		limit = projects.AsRequested(limit, role.Limit, r.req.Requested.Limit.Limit, r.req.Baseline)
	}
	a.Limit = limit.Input()
	return r.checkRaised("limit", limit, role.Limit)
}

func (a limitProposal) apply(r *review) error {
	role, err := a.role(r)
	if err != nil {
		return err
	}
	in := projects.RoleInputOf(role)
	in.Limit = a.Limit
	_, err = r.editor.UpdateRole(r.project, role, in)
	return prefixed("", err, "permission", "role_id")
}

// deadlineProposal is a request for a later end of the requester's membership.
type deadlineProposal struct {
	sameQuota
	*models.DeadlineSpec
}

func (a deadlineProposal) check(now time.Time) error {
	in := projects.MemberInput{Until: a.Until}
	return in.Check(now)
}

func (a deadlineProposal) examine(r *review) error {
	if err := a.check(r.q.Now()); err != nil {
		return err
	}
	m, err := r.membership()
	if err != nil {
		return models.NotFoundAs(err, models.Invalid("until", "belongs to a former member"))
	}
	if !endsLater(r, a.Until, m.Until) {
		return models.Invalid("until", "must be later than the current date")
	}
	return nil
}

func (a deadlineProposal) apply(r *review) error {
	m, err := r.membership()
	if err != nil {
		return err
	}
	_, err = r.editor.UpdateMember(r.project, m, projects.MemberInput{RoleID: m.RoleID, Until: a.Until})
	return prefixed("", err, "role_id", "until")
}

// joinProposal is a request for membership in a project.
type joinProposal struct {
	sameQuota
	*models.JoinSpec
}

func (a joinProposal) check(now time.Time) error {
	in := projects.MemberInput{Until: a.Until}
	return in.Check(now)
}

func (a joinProposal) examine(r *review) error {
	if err := a.check(r.q.Now()); err != nil {
		return err
	}
	if !r.submitting && a.RoleID == 0 {
		return models.Invalid("role_id", "must be chosen by the approver")
	}
	if _, err := r.membership(); models.KindOf(err) != models.KindNotFound {
		if err == nil && r.submitting {
			err = models.Invalid("name", "is a project of which you are already a member")
		}
		return err
	}
	return nil
}

func (a joinProposal) apply(r *review) error {
	m, err := r.editor.AddMember(r.project, projects.MemberInput{Email: r.requester.Email, RoleID: a.RoleID, Until: a.Until})
	r.member = m.ID
	return prefixed("", err, "email", "role_id")
}
