package requests

import (
	"slices"

	"weir/models"
)

// memberManagers are the members whose role permits to change a project's members,
// or the platform administrators if there are none.
func memberManagers(q *models.Queries, project int64) ([]int64, error) {
	ids, err := permitted(q, project, models.MemberWrite)
	if err != nil || len(ids) > 0 {
		return ids, err
	}
	return q.Administrators()
}

// permitted are the members whose role in a project has some permissions.
func permitted(q *models.Queries, project int64, what models.Permissions) ([]int64, error) {
	roles, err := q.Roles(models.AllProjects, project)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, r := range roles {
		if r.Permits().Contains(what) {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return q.UsersInRoles(project, ids)
}

func except(ids []int64, but int64) []int64 {
	return slices.DeleteFunc(ids, func(id int64) bool { return id == but })
}
