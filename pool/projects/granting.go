package projects

import (
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// grantsRole refuses to create, change or delete a role that has, before or after,
// permissions that the actor does not have.
func (e Editor) grantsRole(r models.Role, also ...models.Permissions) error {
	return e.access.CheckGrant(e.q, e.actor, r.ProjectID, "permission", models.Say("The role %s", r.Name), append(also, r.Permits())...)
}

// grantsMembership refuses to create, change or end a membership whose role has, before
// or after, permissions that the actor does not have.
func (e Editor) grantsMembership(user int64, roles ...models.Role) error {
	if e.actor.System != "" || len(roles) == 0 {
		return nil
	}
	u, err := e.q.User(user)
	if err != nil {
		return err
	}
	return e.grantsTo(u.Email, roles...)
}

// grantsTo is grantsMembership for a person with this address, who need not have an
// account.
func (e Editor) grantsTo(email string, roles ...models.Role) error {
	var permissions models.Permissions
	for _, r := range roles {
		permissions |= r.Permits()
	}
	subject := models.Say("%s (role %s)", email, roles[len(roles)-1].Name)
	return e.access.CheckGrant(e.q, e.actor, roles[0].ProjectID, "role_id", subject, permissions)
}

// checkCanEnd refuses to end the membership of a member with more permissions than the
// actor.
func (e Editor) checkCanEnd(m models.Member) error {
	r, err := e.q.Role(store.AllProjects, m.ProjectID, m.RoleID)
	if err != nil {
		return err
	}
	return e.grantsMembership(m.UserID, r)
}

// checkEndNotLater refuses to extend the actor's own membership.
func (e Editor) checkEndNotLater(m models.Member, until *time.Time) error {
	if e.actor.User.ID != m.UserID || !EndsLater(until, m.Until) || e.access.May(e.actor, m.ProjectID, policies.ProjectWrite) {
		return nil
	}
	return models.Forbidden("You cannot extend your own membership. Contact another project manager or a platform administrator.")
}

// EndsLater reports whether an end is after the present one; nil is no end.
func EndsLater(end, present *time.Time) bool {
	return present != nil && (end == nil || end.After(*present))
}

// Permissions are the actor's permissions in a project, for pages.
type Permissions struct {
	EditProject, Describe, EditRoles, EditMembers, Launch, Request, ReadAudit bool
	Has                                                                       models.Permissions // and so may grant
}

// Permissions returns the actor's permissions in a project.
func (s *Service) Permissions(actor policies.Actor, project int64) Permissions {
	return Permissions{
		EditProject: s.access.May(actor, project, policies.ProjectWrite),
		Describe:    s.access.May(actor, project, policies.ProjectDescribe),
		EditRoles:   s.access.May(actor, project, policies.RoleWrite),
		EditMembers: s.access.May(actor, project, policies.MemberWrite),
		Launch:      actor.MemberOf(project) && s.access.May(actor, project, policies.WorkspaceLaunch),
		Request:     actor.MemberOf(project),
		ReadAudit:   s.access.May(actor, project, policies.AuditRead),
		Has:         s.access.PermissionsIn(actor, project),
	}
}
