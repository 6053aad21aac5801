package models

// ProjectsByID finds projects by their ids.
func (q *Queries) ProjectsByID(ids []int64) (map[int64]Project, error) {
	var list []Project
	err := q.db.Where("id IN ?", ids).Find(&list).Error
	found := make(map[int64]Project, len(list))
	for _, p := range list {
		found[p.ID] = p
	}
	return found, err
}

// HeldByProjects is what the workspaces of each of several projects hold;
// absent is nothing.
func (q *Queries) HeldByProjects(ids []int64) (map[int64]Resources, error) {
	var rows []Held
	err := q.db.Model(&Workspace{}).Select("project_id AS id, "+heldColumns).
		Where("project_id IN ? AND state IN ?", ids, HoldingStates).Group("project_id").Scan(&rows).Error
	return heldByID(rows), err
}

// HeldByUser is what a user's workspaces hold, by membership; absent is
// nothing.
func (q *Queries) HeldByUser(userID int64) (map[int64]Resources, error) {
	var rows []Held
	err := q.db.Model(&Workspace{}).Select("member_id AS id, "+heldColumns).
		Where("user_id = ? AND state IN ?", userID, HoldingStates).Group("member_id").Scan(&rows).Error
	return heldByID(rows), err
}

func heldByID(rows []Held) map[int64]Resources {
	held := make(map[int64]Resources, len(rows))
	for _, r := range rows {
		held[r.ID] = r.Resources
	}
	return held
}

// ProjectNames lists the ids and names of the projects in scope by id.
func (q *Queries) ProjectNames(scope Scope, page Page) (list []Project, err error) {
	db := scope.projects(q.db.Select("id, name"), "projects.id").Where("id > ?", page.After).Order("id").Limit(page.limit())
	return list, db.Find(&list).Error
}

// ProjectNamesOf finds the names of those of some projects that are in scope.
func (q *Queries) ProjectNamesOf(scope Scope, ids []int64) (list []Project, err error) {
	return list, scope.projects(q.db.Select("id, name"), "projects.id").Where("id IN ?", ids).Order("id").Find(&list).Error
}
