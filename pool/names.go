package pool

import (
	"context"

	"weir/models"
	"weir/policies"
)

// ProjectNames are projects that the actor may see, by their ids and names
// alone: the first page of all, and those of the chosen that are not on it.
// more tells that there are others.
func (l *Ledger) ProjectNames(ctx context.Context, actor policies.Actor, chosen []int64) (list []models.Project, more bool, err error) {
	if !actor.Signed() {
		return nil, false, l.access.Check(actor, policies.Platform, "project", "read")
	}
	q := l.store.Read(ctx)
	list, err = q.ProjectNames(actor.Scope(), models.Page{Limit: models.PageSize})
	if err != nil || len(list) < models.PageSize {
		return list, false, err
	}
	last := list[len(list)-1].ID
	var beyond []int64
	for _, id := range chosen {
		if id > last {
			beyond = append(beyond, id)
		}
	}
	if len(beyond) == 0 {
		return list, true, nil
	}
	others, err := q.ProjectNamesOf(actor.Scope(), beyond)
	return append(list, others...), true, err
}
