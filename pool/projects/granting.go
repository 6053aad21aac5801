package projects

import (
	"time"

	"weir/models"
	"weir/policies"
)

// grantsRole refuses to make, change or delete a role that permits, before or
// after, what the actor may not do in the project.
func (e Editor) grantsRole(r models.Role, also ...models.Permissions) error {
	return e.access.CheckGrant(e.q, e.actor, r.ProjectID, "permission", models.Say("The role %s", r.Name), append(also, r.Permits())...)
}

// grantsPlace refuses to give, change or end the place of a user whose role,
// before or after, permits what the actor may not do in the project.
func (e Editor) grantsPlace(user int64, roles ...models.Role) error {
	if e.actor.System != "" || len(roles) == 0 {
		return nil
	}
	u, err := e.q.User(user)
	if err != nil {
		return err
	}
	inUse := make([]models.Permissions, len(roles))
	for i, r := range roles {
		inUse[i] = r.Permits()
	}
	whose := models.Say("%s (role %s)", u.Email, roles[len(roles)-1].Name)
	return e.access.CheckGrant(e.q, e.actor, roles[0].ProjectID, "role_id", whose, inUse...)
}

// mayEnd refuses to end, or to change in any way, the place of a member with
// more rights than the actor has.
func (e Editor) mayEnd(m models.Member) error {
	r, err := e.q.Role(models.Everything, m.ProjectID, m.RoleID)
	if err != nil {
		return err
	}
	return e.grantsPlace(m.UserID, r)
}

// staysAsLong refuses to put off the end of one's own participation: another
// manager can, or a platform administrator.
func (e Editor) staysAsLong(m models.Member, until *time.Time) error {
	if e.actor.User.ID != m.UserID || !EndsLater(until, m.Until) || e.access.May(e.actor, m.ProjectID, policies.ProjectWrite) {
		return nil
	}
	return models.Forbidden("You cannot extend your own membership. Contact another project manager or a platform administrator.")
}

// EndsLater tells whether an end lies after another; without an end is last.
func EndsLater(asked, present *time.Time) bool {
	return present != nil && (asked == nil || asked.After(*present))
}

// Permissions tells what the actor may do in a project, for buttons.
type Permissions struct {
	EditProject, Describe, EditRoles, EditMembers, Launch, Request, ReadAudit bool
	Has                                                                       models.Permissions // and so may grant
}

// Permissions of the actor in a project.
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
