package models

// InUseByProjects is what the workspaces of several projects use, by project;
// absent is nothing.
func (q *Queries) InUseByProjects(ids []int64) (map[int64]Resources, error) {
	var rows []InUse
	err := q.db.Model(&Workspace{}).Select("project_id AS id, "+usageColumns).
		Where("project_id IN ? AND state IN ?", ids, HoldingStates).Group("project_id").Scan(&rows).Error
	return inUseByID(rows), err
}

// InUseByUser is what a user's workspaces use, by membership; absent is nothing.
func (q *Queries) InUseByUser(userID int64) (map[int64]Resources, error) {
	var rows []InUse
	err := q.db.Model(&Workspace{}).Select("member_id AS id, "+usageColumns).
		Where("user_id = ? AND state IN ?", userID, HoldingStates).Group("member_id").Scan(&rows).Error
	return inUseByID(rows), err
}

func inUseByID(rows []InUse) map[int64]Resources {
	inUse := make(map[int64]Resources, len(rows))
	for _, r := range rows {
		inUse[r.ID] = r.Resources
	}
	return inUse
}

// InUse is what workspaces use: Σ over those in one of HoldingStates.
type InUse struct {
	ID int64 // project or member
	Resources
}

const usageColumns = `CAST(COALESCE(SUM(gpus * cores), 0) AS BIGINT) AS gpu_cores,
	CAST(COALESCE(SUM(gpus * gpu_memory_mib), 0) AS BIGINT) AS gpu_memory_mib,
	CAST(COALESCE(SUM(cpu_milli), 0) AS BIGINT) AS cpu_milli,
	CAST(COALESCE(SUM(memory_mib), 0) AS BIGINT) AS memory_mib,
	CAST(COALESCE(SUM(storage_mib), 0) AS BIGINT) AS storage_mib`

// InUseByProject is what all workspaces of a project use.
func (q *Queries) InUseByProject(projectID int64) (r Resources, err error) {
	err = q.db.Model(&Workspace{}).Select(usageColumns).
		Where("project_id = ? AND state IN ?", projectID, HoldingStates).Scan(&r).Error
	return r, err
}

// InUseByMember is what a member's workspaces use.
func (q *Queries) InUseByMember(projectID, memberID int64) (r Resources, err error) {
	err = q.db.Model(&Workspace{}).Select(usageColumns).
		Where("project_id = ? AND member_id = ? AND state IN ?", projectID, memberID, HoldingStates).Scan(&r).Error
	return r, err
}

// InUseByMembers is what a project's members use, by member; absent is nothing.
func (q *Queries) InUseByMembers(projectID int64) (map[int64]Resources, error) {
	var rows []InUse
	err := q.db.Model(&Workspace{}).Select("member_id AS id, "+usageColumns).
		Where("project_id = ? AND state IN ?", projectID, HoldingStates).Group("member_id").Scan(&rows).Error
	inUse := map[int64]Resources{}
	for _, r := range rows {
		inUse[r.ID] = r.Resources
	}
	return inUse, err
}

// InUseByRoles is what a project's members use now, by role; absent is nothing.
func (q *Queries) InUseByRoles(project int64) (map[int64]Resources, error) {
	var rows []InUse
	err := q.db.Table("workspaces").Select("members.role_id AS id, "+usageColumns).
		Joins("JOIN members ON members.id = workspaces.member_id AND members.removed_at IS NULL").
		Where("workspaces.project_id = ? AND workspaces.state IN ?", project, HoldingStates).Group("members.role_id").Scan(&rows).Error
	inUse := map[int64]Resources{}
	for _, r := range rows {
		inUse[r.ID] = r.Resources
	}
	return inUse, err
}
