package store

import (
	"time"

	"gorm.io/gorm/clause"

	"weir/models"
)

// PeriodWindow selects ends after Since and not after Ahead. For ends up to Now
// the last notification is due, for those up to Soon the one before it.
type PeriodWindow struct{ Since, Now, Soon, Ahead time.Time }

func (w PeriodWindow) values() map[string]any {
	return map[string]any{"since": w.Since, "now": w.Now, "soon": w.Soon, "ahead": w.Ahead}
}

const (
	projectEnds = `FROM projects p WHERE p.ends_at > @since AND p.ends_at <= @ahead`
	// Memberships in projects that ended before them are left out.
	memberEnds = `FROM members m JOIN users u ON u.id = m.user_id JOIN projects p ON p.id = m.project_id
		WHERE m.until > @since AND m.until <= @ahead AND m.removed_at IS NULL AND (p.ends_at IS NULL OR p.ends_at > @now OR p.ends_at >= m.until)`
)

// notNotified is the condition that the notification which is due was not sent.
func notNotified(kind, id, end string) string {
	return ` AND NOT EXISTS (SELECT 1 FROM period_notifications n WHERE n.kind = '` + kind + `' AND n.thing_id = ` + id + ` AND n.ends_at = ` + end + `
		AND n.days <= CASE WHEN ` + end + ` <= @now THEN 0 WHEN ` + end + ` <= @soon THEN 1 ELSE 7 END)`
}

// notifiedDays selects how many days ahead the last notification was sent.
func notifiedDays(kind, id, end string) string {
	return `(SELECT MIN(n.days) FROM period_notifications n WHERE n.kind = '` + kind + `' AND n.thing_id = ` + id + ` AND n.ends_at = ` + end + `) AS notified_days`
}

// ProjectsToNotify lists projects, at most limit, with a notification that is due:
// of the end of the project or of a membership in it.
func (q *Queries) ProjectsToNotify(w PeriodWindow, limit int) (ids []int64, err error) {
	projects := "SELECT p.id AS id " + projectEnds + notNotified(models.EndOfProject, "p.id", "p.ends_at")
	members := "SELECT m.project_id AS id " + memberEnds + notNotified(models.EndOfMember, "m.id", "m.until")
	values := w.values()
	values["limit"] = limit
	return ids, q.db.Raw("SELECT id FROM ("+projects+" UNION "+members+") AS due ORDER BY id LIMIT @limit", values).Scan(&ids).Error
}

// EndsIn lists a project's ends within a window, each with the last notification
// that was sent of it.
func (q *Queries) EndsIn(projectID int64, w PeriodWindow) (list []models.PeriodEnd, err error) {
	values := w.values()
	values["project"] = projectID
	err = q.db.Raw("SELECT 'project' AS kind, p.id AS thing_id, p.id AS project_id, p.ends_at AS ends_at, "+notifiedDays(models.EndOfProject,
		"p.id", "p.ends_at")+" "+
		projectEnds+" AND p.id = @project", values).Scan(&list).Error
	if err != nil {
		return nil, err
	}
	var members []models.PeriodEnd
	err = q.db.Raw("SELECT 'member' AS kind, m.id AS thing_id, m.project_id AS project_id, m.user_id AS user_id, u.name AS user_name, m.until AS ends_at, "+
		notifiedDays(models.EndOfMember, "m.id", "m.until")+" "+
		memberEnds+" AND m.project_id = @project ORDER BY m.id", values).Scan(&members).Error
	return append(list, members...), err
}

// RecordPeriodNotification records that a notification was sent; it returns false when
// it was recorded before.
func (q *Queries) RecordPeriodNotification(n models.PeriodNotification) (bool, error) {
	res := q.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&n)
	return res.RowsAffected == 1, res.Error
}

// NextEnd is the first end of a project or a membership after a time; nil
// without one.
func (q *Queries) NextEnd(after time.Time) (*time.Time, error) {
	var ends []time.Time
	if err := q.db.Model(&models.Project{}).Where("ends_at > ?", after).Order("ends_at").Limit(1).Pluck("ends_at", &ends).Error; err != nil {
		return nil, err
	}
	var untils []time.Time
	if err := q.db.Model(&models.Member{}).Where("until > ? AND removed_at IS NULL", after).Order("until").Limit(1).Pluck("until",
		&untils).Error; err != nil {
		return nil, err
	}
	var next *time.Time
	for _, t := range append(ends, untils...) {
		if next == nil || t.Before(*next) {
			next = &t
		}
	}
	return next, nil
}

// PrunePeriodNotifications deletes the records of ends before a time.
func (q *Queries) PrunePeriodNotifications(before time.Time) error {
	return q.db.Where("ends_at <= ?", before).Delete(&models.PeriodNotification{}).Error
}

// UsersPermitted lists the enabled accounts of a project's active members whose role
// has some permissions.
func (q *Queries) UsersPermitted(projectID int64, what models.Permissions) (ids []int64, err error) {
	roles, err := q.Roles(AllProjects, projectID)
	if err != nil {
		return nil, err
	}
	var permitted []int64
	for _, r := range roles {
		if r.Permits().Contains(what) {
			permitted = append(permitted, r.ID)
		}
	}
	if len(permitted) == 0 {
		return nil, nil
	}
	err = q.db.Model(&models.Member{}).Where("project_id = ? AND role_id IN ? AND removed_at IS NULL AND (until IS NULL OR until > ?) AND user_id IN (SELECT id FROM users WHERE NOT disabled)", projectID, permitted, q.Now()).
		Order("user_id").Pluck("user_id", &ids).Error
	return ids, err
}

// Managers lists those who may change the members of a project, or the administrators
// if there are none.
func (q *Queries) Managers(projectID int64) ([]int64, error) {
	ids, err := q.UsersPermitted(projectID, models.MemberWrite)
	if err != nil || len(ids) > 0 {
		return ids, err
	}
	return q.Administrators()
}

// UsersWithWorkspaces lists the accounts whose workspaces in a project have not
// ended before a time.
func (q *Queries) UsersWithWorkspaces(projectID int64, since time.Time) (ids []int64, err error) {
	err = q.db.Model(&models.Claim{}).Where("kind = ? AND project_id = ? AND (ended_at IS NULL OR ended_at >= ?)", models.HolderWorkspace,
		projectID, since).
		Distinct().Order("user_id").Pluck("user_id", &ids).Error
	return ids, err
}

// TermOf returns until when a member's workspaces may run.
func (q *Queries) TermOf(memberID int64) (t models.Term, err error) {
	err = q.db.Table("members").Select("members.until AS until, projects.ends_at AS ends_at").
		Joins("JOIN projects ON projects.id = members.project_id").Where("members.id = ?", memberID).Take(&t).Error
	return t, found(err, "member")
}

// ProjectsOf finds those of some projects that are in scope, by id.
func (q *Queries) ProjectsOf(scope Scope, ids []int64) (list []models.Project, err error) {
	return list, scope.projects(q.db, "projects.id").Where("id IN ?", ids).Order("id").Find(&list).Error
}

// ProjectMember is a present member with its project's name, also after
// its deadline.
type ProjectMember struct {
	models.Member
	ProjectName string
}

// MembershipsIn lists a user's memberships in some projects.
func (q *Queries) MembershipsIn(userID int64, projects []int64) (list []ProjectMember, err error) {
	err = q.db.Table("members").Select("members.*, projects.name AS project_name").
		Joins("JOIN projects ON projects.id = members.project_id").
		Where("members.user_id = ? AND members.project_id IN ? AND members.removed_at IS NULL", userID, projects).
		Order("members.project_id").Limit(PageSize).Find(&list).Error
	return list, err
}

// PendingExtensions lists the pending requests for a later end of some projects,
// and of the user's own membership in them.
func (q *Queries) PendingExtensions(userID int64, projects []int64) (list []models.QuotaRequest, err error) {
	err = q.db.Where("state = ? AND project_id IN ? AND (kind = ? OR kind = ? AND requester_id = ?)",
		models.RequestPending, projects, models.RequestPeriod, models.RequestDeadline, userID).Order("id").Limit(PageSize).Find(&list).Error
	return list, err
}
