package projects

import (
	"context"
	"regexp"
	"time"

	"weir/models"
	"weir/policies"
)

// ServiceAccountInput describes a service account of a project.
type ServiceAccountInput struct {
	Name   string     `json:"name" maxLength:"63" doc:"name in the project: lower-case letters, digits and hyphens" example:"nightly-build"`
	RoleID int64      `json:"role_id" minimum:"1"`
	Until  *time.Time `json:"until,omitempty" doc:"end of the membership; absent if open-ended"`
}

var serviceAccountName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Check validates and normalizes the input.
func (in *ServiceAccountInput) Check(now time.Time) error {
	var p models.Problems
	if !serviceAccountName.MatchString(in.Name) {
		p.Add("name", "must be 1 to 63 lower-case letters, digits and hyphens, without a hyphen at the ends")
	}
	checkUntil(&in.Until, now, &p)
	return p.Err()
}

// CreateServiceAccount adds an account for programs to a project, under the rules of
// AddMember. It never signs in; it acts with tokens that the managers of the members
// create. A removed service account with the same name is added again.
func (s *Service) CreateServiceAccount(ctx context.Context, actor policies.Actor, project int64, in ServiceAccountInput) (
	m models.Member, err error) {
	err = s.edit(ctx, actor, project, policies.MemberWrite, func(e Editor, p models.Project) (err error) {
		m, err = e.createServiceAccount(p, in)
		return err
	})
	if err == nil {
		s.MakeMemberDirectory(ctx, project, m.ID)
	}
	return m, err
}

func (e Editor) createServiceAccount(p models.Project, in ServiceAccountInput) (m models.Member, err error) {
	if err := in.Check(e.q.Now()); err != nil {
		return m, err
	}
	r, err := e.q.Role(e.actor.Scope(), p.ID, in.RoleID)
	if err != nil {
		return m, models.NotFoundAs(err, roleNotFound())
	}
	u, err := e.serviceAccount(p.ID, in.Name)
	if err != nil {
		return m, err
	}
	if err := e.checkNewMember(p, u.ID, r); err != nil {
		return m, err
	}
	return e.addMember(u.ID, r, MemberInput{RoleID: in.RoleID, Until: in.Until})
}

// serviceAccount finds the account of a former service account, or creates it.
func (e Editor) serviceAccount(project int64, name string) (models.User, error) {
	u, err := e.q.UserByEmail(models.ServiceAccountID(project, name))
	if models.KindOf(err) == models.KindNotFound {
		u = models.User{Email: models.ServiceAccountID(project, name), Name: name, SessionGeneration: 1, Version: 1, CreatedAt: e.q.Now()}
		if err := e.q.CreateUser(&u); err != nil {
			return u, err
		}
		return u, e.actor.Audit(e.q, policies.Change{Action: "create", Object: "account", ID: u.ID, Project: project,
			After: map[string]any{"email": u.Email, "name": u.Name}})
	}
	if err != nil {
		return u, err
	}
	if u.Disabled {
		return u, models.Invalid("name", "belongs to a disabled account")
	}
	m, err := e.q.Membership(project, u.ID)
	if err == nil && m.RemovedAt == nil {
		return u, models.Invalid("name", "is already taken")
	}
	return u, err
}
