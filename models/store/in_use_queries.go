package store

import (
	"gorm.io/gorm"

	"weir/models"
)

const usageColumns = `CAST(COALESCE(SUM(gpus * cores), 0) AS BIGINT) AS gpu_cores,
	CAST(COALESCE(SUM(gpus * gpu_memory_mib), 0) AS BIGINT) AS gpu_memory_mib,
	CAST(COALESCE(SUM(cpu_milli), 0) AS BIGINT) AS cpu_milli,
	CAST(COALESCE(SUM(memory_mib), 0) AS BIGINT) AS memory_mib,
	CAST(COALESCE(SUM(storage_mib), 0) AS BIGINT) AS storage_mib`

// inUsePhase is models.InUsePhases, written out: a partial index is only used for values
// that are known when a statement is prepared.
const inUsePhase = "holders.phase IN ('in_use', 'ending')"

// inUseBy sums the resources of those of some holders that use them, by the value of a
// column. A value without such holders is absent.
func inUseBy(holders *gorm.DB, column string) (map[int64]models.Resources, error) {
	var rows []struct {
		ID int64
		models.Resources
	}
	err := holders.Table("holders").Select(column + " AS id, " + usageColumns).
		Where(inUsePhase).Group(column).Scan(&rows).Error
	inUse := make(map[int64]models.Resources, len(rows))
	for _, r := range rows {
		inUse[r.ID] = r.Resources
	}
	return inUse, err
}

// InUseByProjects returns the resources in use in several projects, by project;
// absent is nothing.
func (q *Queries) InUseByProjects(ids []int64) (map[int64]models.Resources, error) {
	return inUseBy(q.db.Where("project_id IN ?", ids), "project_id")
}

// InUseInProjects is InUseByProjects for all projects.
func (q *Queries) InUseInProjects() (map[int64]models.Resources, error) {
	return inUseBy(q.db, "project_id")
}

// InUseByProject returns the resources in use in a project.
func (q *Queries) InUseByProject(projectID int64) (models.Resources, error) {
	inUse, err := q.InUseByProjects([]int64{projectID})
	return inUse[projectID], err
}

// InUseByUser returns the resources that a user uses, by membership; absent is
// nothing.
func (q *Queries) InUseByUser(userID int64) (map[int64]models.Resources, error) {
	return inUseBy(q.db.Where("user_id = ?", userID), "member_id")
}

// InUseByMembers returns the resources in use in some projects, by member; absent
// is nothing.
func (q *Queries) InUseByMembers(projectIDs ...int64) (map[int64]models.Resources, error) {
	return inUseBy(q.db.Where("project_id IN ?", projectIDs), "member_id")
}

// InUseByMember returns the resources that a member of a project uses.
func (q *Queries) InUseByMember(projectID, memberID int64) (models.Resources, error) {
	inUse, err := inUseBy(q.db.Where("project_id = ? AND member_id = ?", projectID, memberID), "member_id")
	return inUse[memberID], err
}

// InUseByRoles returns the resources in use in a project, by the present role of
// the member; absent is nothing.
func (q *Queries) InUseByRoles(projectID int64) (map[int64]models.Resources, error) {
	return inUseBy(q.db.Joins("JOIN members ON members.id = holders.member_id AND members.removed_at IS NULL").
		Where("holders.project_id = ?", projectID), "members.role_id")
}
