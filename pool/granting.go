package pool

import (
	"time"

	"weir/models"
	"weir/policies"
)

// grantsRole refuses to make, change or delete a role that permits, before or
// after, what the actor may not do in the project.
func (l *Ledger) grantsRole(q *models.Queries, actor policies.Actor, r models.Role, also ...models.Permissions) error {
	return l.access.Granting(q, actor, r.ProjectID, "permission", models.Say("The role %s", r.Name), append(also, r.Permits())...)
}

// grantsPlace refuses to give, change or end the place of a user whose role,
// before or after, permits what the actor may not do in the project.
func (l *Ledger) grantsPlace(q *models.Queries, actor policies.Actor, user int64, roles ...models.Role) error {
	if actor.System != "" || len(roles) == 0 {
		return nil
	}
	u, err := q.User(user)
	if err != nil {
		return err
	}
	held := make([]models.Permissions, len(roles))
	for i, r := range roles {
		held[i] = r.Permits()
	}
	whose := models.Say("%s, in the role %s,", u.Email, roles[len(roles)-1].Name)
	return l.access.Granting(q, actor, roles[0].ProjectID, "role_id", whose, held...)
}

// mayEnd refuses to end, or to change in any way, the place of a member with
// more rights than the actor has.
func (l *Ledger) mayEnd(q *models.Queries, actor policies.Actor, m models.Member) error {
	r, err := q.Role(models.Everything, m.ProjectID, m.RoleID)
	if err != nil {
		return err
	}
	return l.grantsPlace(q, actor, m.UserID, r)
}

// staysAsLong refuses to put off the end of one's own participation: another
// manager can, or a platform administrator.
func (l *Ledger) staysAsLong(actor policies.Actor, m models.Member, until *time.Time) error {
	if actor.User.ID != m.UserID || !later(until, m.Until) || l.access.May(actor, m.ProjectID, "project", "write") {
		return nil
	}
	return models.Forbidden("Nobody extends their own participation. Another manager of the project can, or a platform administrator.")
}
