package policies

import "weir/models"

// Granting refuses what would give, change or take away rights in a project
// that the actor does not have there: nobody grants what they lack, nor
// stands above who has more. Held are the sets of permissions that are given,
// changed or taken away, whose names them for the refusal, and field
// is what chose them in the input. Platform administrators and Weir itself have everything.
//
// It is asked within the transaction that makes the change, for which Write
// holds the project, and reads the actor's rights as they are there.
func (a *Access) Granting(q *models.Queries, actor Actor, project int64, field string, whose models.Text, held ...models.Permissions) error {
	have, err := a.having(q, actor, project)
	if err != nil {
		return err
	}
	var lacks models.Permissions
	for _, set := range held {
		lacks |= set.Without(have)
	}
	if lacks == 0 {
		return nil
	}
	e := models.Forbidden("%s has rights that you do not have: %s. Somebody who has them can do this, or a platform administrator.",
		whose, lacks.String())
	e.Fields = []models.Field{{Name: field, Reason: models.Say("has rights that you do not have: %s", lacks.String())}}
	return e
}

// having is what the actor may do in the project, as this transaction sees it.
func (a *Access) having(q *models.Queries, actor Actor, project int64) (models.Permissions, error) {
	if actor.System != "" {
		return models.AllPermissions, nil
	}
	u, err := q.User(actor.User.ID)
	if err != nil || u.Disabled {
		return 0, signInAgain(err)
	}
	now, err := actorOf(q, u)
	return a.Having(now, project), err
}

// Having is what the actor may do in a project: everything as a platform
// administrator, otherwise what the role there permits.
func (a *Access) Having(actor Actor, project int64) models.Permissions {
	if a.May(actor, project, "project", "write") {
		return models.AllPermissions
	}
	return actor.Grants[project].Permissions
}
