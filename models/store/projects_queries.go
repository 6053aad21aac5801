package store

import (
	"slices"
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// CreateProject inserts p; a taken name is a Conflict.
func (q *Queries) CreateProject(p *models.Project) error {
	q.Touch("projects")
	err := q.db.Create(p).Error
	q.markHistory(p.ID)
	return nameTaken(err, "project", p.Name)
}

// UpdateProject writes p if its version is still p.Version.
func (q *Queries) UpdateProject(p *models.Project) error {
	q.Touch("project", p.ID)
	q.changeShares() // the cached pool contains its name
	q.poolProjects = append(q.poolProjects, p.ID)
	q.Revoke("project", p.ID)
	q.markHistory(p.ID)
	return nameTaken(q.update(p, &p.Version, p.ID, "project"), "project", p.Name)
}

// markHistory marks a project whose allocated limits or quota this transaction
// may change.
func (q *Queries) markHistory(project int64) {
	if q.topics != nil && !slices.Contains(q.historyOf, project) {
		q.historyOf = append(q.historyOf, project)
	}
}

// Project finds a project in scope. A snapshot reads it once for an actor.
func (q *Queries) Project(scope Scope, id int64) (models.Project, error) {
	type project struct {
		id, user int64
		at       time.Time
		all      bool
	}
	read := func() (p models.Project, err error) {
		return p, found(scope.projects(q.db, "projects.id").Take(&p, id).Error, "project")
	}
	if len(scope.Projects) > 0 {
		return read()
	}
	return once(q.snapshot, project{id, scope.UserID, scope.At, scope.All}, read)
}

// LockProjectRows makes this transaction the only one that changes the
// projects' roles, members or workspaces.
func (q *Queries) LockProjectRows(ids ...int64) error {
	return q.lock("SELECT id FROM projects WHERE id IN ? ORDER BY id FOR NO KEY UPDATE", ids)
}

// LockProject locks the project's row and returns it.
func (q *Queries) LockProject(scope Scope, id int64) (models.Project, error) {
	if err := q.LockProjectRows(id); err != nil {
		return models.Project{}, err
	}
	return q.Project(scope, id)
}

// CreateRole inserts r; a name taken in the project is a Conflict.
func (q *Queries) CreateRole(r *models.Role) error {
	q.Touch("project", r.ProjectID)
	return nameTaken(q.db.Create(r).Error, "role", r.Name)
}

// UpdateRole writes r if its version is still r.Version.
func (q *Queries) UpdateRole(r *models.Role) error {
	q.Touch("project", r.ProjectID)
	q.Revoke("project", r.ProjectID)
	q.markHistory(r.ProjectID)
	return nameTaken(q.update(r, &r.Version, r.ID, "role"), "role", r.Name)
}

// DeleteRole removes a role that no present member has; removed members lose it.
func (q *Queries) DeleteRole(scope Scope, projectID, id int64) error {
	q.Touch("project", projectID)
	err := scope.projects(q.db.Model(&models.Member{}), "project_id").
		Where("project_id = ? AND role_id = ? AND removed_at IS NOT NULL", projectID, id).Update("role_id", nil).Error
	if err != nil {
		return err
	}
	if err := q.deleteFileRulesOf(projectID, models.SubjectRole, id); err != nil {
		return err
	}
	return q.deleted(scope.projects(q.db, "project_id").Where("project_id = ? AND id = ?", projectID, id).Delete(&models.Role{}), "role")
}

// Role finds a role of a project.
func (q *Queries) Role(scope Scope, projectID, id int64) (r models.Role, err error) {
	return r, found(scope.projects(q.db, "project_id").Where("project_id = ? AND id = ?", projectID, id).Take(&r).Error, "role")
}

// Roles lists a project's roles by id.
func (q *Queries) Roles(scope Scope, projectID int64) (roles []models.Role, err error) {
	db := scope.projects(q.db, "project_id").Where("project_id = ?", projectID).Order("id").Limit(1000)
	return roles, db.Find(&roles).Error
}

// RoleMembers counts the present members with a role.
func (q *Queries) RoleMembers(projectID, roleID int64) (n int64, err error) {
	return n, q.db.Model(&models.Member{}).Where("project_id = ? AND role_id = ? AND removed_at IS NULL", projectID, roleID).Count(&n).Error
}

// CreateMember inserts m. JoinedAt defaults to the day of its creation.
func (q *Queries) CreateMember(m *models.Member) error {
	if m.JoinedAt.IsZero() {
		m.JoinedAt = models.Day(m.CreatedAt)
	}
	q.Touch("project", m.ProjectID)
	q.Touch("user", m.UserID)
	q.Revoke("user", m.UserID) // cached grants lack this one
	q.markHistory(m.ProjectID)
	err := q.db.Create(m).Error
	if Duplicate(err) {
		return models.ConflictAt("email", models.Say("is already a member"), models.Say("This person is already a member."))
	}
	return err
}

// UpdateMember writes m if its version is still m.Version.
func (q *Queries) UpdateMember(m *models.Member) error {
	q.Touch("project", m.ProjectID)
	q.Touch("user", m.UserID)
	q.markHistory(m.ProjectID)
	q.Revoke("user", m.UserID)
	return q.update(m, &m.Version, m.ID, "member")
}

// Member finds a present member of a project.
func (q *Queries) Member(scope Scope, projectID, id int64) (m models.Member, err error) {
	db := scope.projects(q.db, "project_id").Where("project_id = ? AND id = ? AND removed_at IS NULL", projectID, id)
	return m, found(db.Take(&m).Error, "member")
}

// Membership finds a user's row in a project, present or removed.
func (q *Queries) Membership(projectID, userID int64) (m models.Member, err error) {
	return m, found(q.db.Where("project_id = ? AND user_id = ?", projectID, userID).Take(&m).Error, "member")
}

const memberColumns = `members.*, users.name AS user_name, users.email AS user_email, users.email_unconfirmed AS user_unconfirmed,
	COALESCE((SELECT departments.name FROM departments WHERE departments.id = users.department_id), '') AS department,
	roles.name AS role_name, roles.permission AS permission, roles.permissions AS role_permissions, ` + limitColumns

const limitColumns = "roles.limit_gpu_cores, roles.limit_gpu_memory_mib, roles.limit_cpu_milli, roles.limit_memory_mib, roles.limit_storage_mib"

// memberViews selects present members with their names and roles.
func (q *Queries) memberViews(scope Scope) *gorm.DB {
	return scope.projects(q.db.Table("members"), "members.project_id").Select(memberColumns).
		Joins("JOIN users ON users.id = members.user_id").
		Joins("JOIN roles ON roles.id = members.role_id").
		Where("members.removed_at IS NULL")
}

// Members lists a project's present members with their names and roles.
func (q *Queries) Members(scope Scope, projectID int64, page Page) (members []models.MemberView, err error) {
	db := q.memberViews(scope).Where("members.project_id = ?", projectID)
	return members, page.oldest(db, "members.id").Find(&members).Error
}

// MembershipsOf lists a user's active memberships with their roles.
func (q *Queries) MembershipsOf(userID int64, now time.Time) (members []models.MemberView, err error) {
	of, err := q.MembershipsByUser(now, userID)
	return of[userID], err
}

// MembershipsByUser lists the active memberships of users, with their roles.
func (q *Queries) MembershipsByUser(now time.Time, userIDs ...int64) (map[int64][]models.MemberView, error) {
	var list []models.MemberView
	err := q.memberViews(AllProjects).Where("members.user_id IN ? AND (members.until IS NULL OR members.until > ?)", userIDs, now).
		Order("members.project_id").Limit(1000 * len(userIDs)).Find(&list).Error
	of := map[int64][]models.MemberView{}
	for _, m := range list {
		of[m.UserID] = append(of[m.UserID], m)
	}
	return of, err
}

// AllocatedLimits is Σ over present members of their role's limit.
func (q *Queries) AllocatedLimits(projectID int64) (models.Resources, error) {
	sums, err := q.allocatedTo([]int64{projectID})
	return sums[projectID].Allocated, err
}

// MemberView finds a present member with its names and role.
func (q *Queries) MemberView(scope Scope, projectID, id int64) (m models.MemberView, err error) {
	return m, found(q.memberViews(scope).Where("members.project_id = ? AND members.id = ?", projectID, id).Take(&m).Error, "member")
}

// LaunchMember is a present member with the number of their active workspaces.
type LaunchMember struct {
	models.MemberView
	ActiveWorkspaces int64
}

// LaunchMember finds a user's present membership in a project.
func (q *Queries) LaunchMember(projectID, userID int64) (m LaunchMember, err error) {
	return m, found(q.launchMembers().Where("members.project_id = ? AND members.user_id = ?", projectID, userID).Take(&m).Error, "member")
}

// LaunchMembers lists the present memberships of users in projects.
func (q *Queries) LaunchMembers(projectIDs, userIDs []int64) (list []LaunchMember, err error) {
	return list, q.launchMembers().Where("members.project_id IN ? AND members.user_id IN ?", projectIDs, userIDs).Find(&list).Error
}

func (q *Queries) launchMembers() *gorm.DB {
	active := q.db.Model(&models.Workspace{}).Select("COUNT(*)").Where("workspaces.member_id = members.id AND workspaces.state IN ?",
		models.ActiveStates)
	return q.memberViews(AllProjects).Select(memberColumns+", (?) AS active_workspaces", active)
}

// MembersWithRole lists the present members with a role.
func (q *Queries) MembersWithRole(projectID, roleID int64) (members []models.MemberView, err error) {
	return members, q.memberViews(AllProjects).Where("members.project_id = ? AND members.role_id = ?", projectID, roleID).
		Order("members.id").Find(&members).Error
}

// CountRoleMembers counts a project's present members by role.
func (q *Queries) CountRoleMembers(projectID int64) (map[int64]int64, error) {
	return countBy[int64](q.db.Model(&models.Member{}).Where("project_id = ? AND removed_at IS NULL", projectID), "role_id", "*")
}

// Sums are a project's totals: what is allocated and what is in use.
type Sums struct {
	Allocated, InUse models.Resources
	Members          int64
	ActiveWorkspaces int64
}

// ProjectSums adds up several projects with a fixed number of queries.
func (q *Queries) ProjectSums(ids []int64) (map[int64]Sums, error) {
	sums, err := q.allocatedTo(ids)
	if err != nil {
		return nil, err
	}
	inUse, err := q.InUseByProjects(ids)
	if err != nil {
		return nil, err
	}
	var rows []struct{ ID, Active, Used int64 }
	err = q.db.Raw(`SELECT project_id AS id, COUNT(*) AS active, 0 AS used FROM workspaces
		WHERE project_id IN ? AND state IN ? GROUP BY project_id
		UNION ALL SELECT project_id, 0, used FROM storage_use WHERE project_id IN ?`, ids, models.ActiveStates, ids).Scan(&rows).Error
	for _, id := range ids {
		s := sums[id]
		s.InUse = inUse[id]
		sums[id] = s
	}
	for _, r := range rows {
		s := sums[r.ID]
		s.ActiveWorkspaces += r.Active
		s.InUse.StorageMiB += models.StorageUse{Used: r.Used}.UsedMiB()
		sums[r.ID] = s
	}
	return sums, err
}

// allocatedTo adds up the limits of several projects' present members.
func (q *Queries) allocatedTo(ids []int64) (map[int64]Sums, error) {
	var rows []struct {
		ID int64
		N  int64
		models.Resources
	}
	err := q.db.Table("members").Select("members.project_id AS id, COUNT(*) AS n, "+sumColumns("roles.limit_")).
		Joins("JOIN roles ON roles.id = members.role_id").
		Where("members.project_id IN ? AND members.removed_at IS NULL", ids).Group("members.project_id").Scan(&rows).Error
	sums := map[int64]Sums{}
	for _, r := range rows {
		sums[r.ID] = Sums{Allocated: r.Resources, Members: r.N}
	}
	return sums, err
}

// ProjectsByID finds projects by their ids.
func (q *Queries) ProjectsByID(ids []int64) (map[int64]models.Project, error) {
	var list []models.Project
	err := q.db.Where("id IN ?", ids).Find(&list).Error
	found := make(map[int64]models.Project, len(list))
	for _, p := range list {
		found[p.ID] = p
	}
	return found, err
}

// ProjectNames lists the ids and names of the projects in scope, by id.
func (q *Queries) ProjectNames(scope Scope, page Page) (list []models.Project, err error) {
	return list, page.oldest(scope.projects(q.db.Select("id, name"), "projects.id"), "id").Find(&list).Error
}

// StorageQuotas lists the ids and storage quotas of all projects, by id.
func (q *Queries) StorageQuotas(page Page) (list []models.Project, err error) {
	return list, page.oldest(q.db.Select("id, quota_storage_mib"), "id").Find(&list).Error
}

// ProjectByName finds a project in scope.
func (q *Queries) ProjectByName(scope Scope, name string) (p models.Project, err error) {
	if !storable(name) {
		return p, models.NotFound("project")
	}
	return p, found(scope.projects(q.db, "projects.id").Where("name = ?", name).Take(&p).Error, "project")
}

// RoleByName finds a role of a project.
func (q *Queries) RoleByName(projectID int64, name string) (r models.Role, err error) {
	if !storable(name) {
		return r, models.NotFound("role")
	}
	return r, found(q.db.Where("project_id = ? AND name = ?", projectID, name).Take(&r).Error, "role")
}
