package store

import (
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// isActive is the condition that a membership is active at a time, its
// parameter.
func isActive(table string) string {
	return "(" + table + ".removed_at IS NULL AND (" + table + ".until IS NULL OR " + table + ".until > ?))"
}

// FormerMembers lists the former members of a project, by id.
func (q *Queries) FormerMembers(scope Scope, projectID int64, page Page) (list []models.FormerMember, err error) {
	return list, page.oldest(q.formerMembers(scope, projectID), "members.id").Find(&list).Error
}

// FormerMember finds a former member of a project.
func (q *Queries) FormerMember(scope Scope, projectID, id int64) (l models.FormerMember, err error) {
	return l, found(q.formerMembers(scope, projectID).Where("members.id = ?", id).Take(&l).Error, "member")
}

func (q *Queries) formerMembers(scope Scope, projectID int64) *gorm.DB {
	now := q.Now()
	return scope.projects(q.db.Table("members"), "members.project_id").
		Select("members.*, users.name AS user_name, users.email AS user_email, recipients.id AS recipient_id, COALESCE(recipient_users.name, '') AS recipient_name, handovers.at AS handover_at").
		Joins("JOIN users ON users.id = members.user_id").
		Joins("LEFT JOIN handovers ON handovers.member_id = members.id").
		Joins("LEFT JOIN members recipients ON recipients.id = handovers.to_member_id AND "+isActive("recipients"), now).
		Joins("LEFT JOIN users recipient_users ON recipient_users.id = recipients.user_id").
		Where("members.project_id = ? AND NOT "+isActive("members"), projectID, now)
}

// Recipients lists a project's active members, the first thousand by name.
func (q *Queries) Recipients(projectID int64) (list []models.Recipient, err error) {
	err = q.db.Table("members").Select("members.id, users.name AS user_name, users.email AS user_email").
		Joins("JOIN users ON users.id = members.user_id").
		Where("members.project_id = ? AND "+isActive("members"), projectID, q.Now()).
		Order("users.name, members.id").Limit(1000).Find(&list).Error
	return list, err
}

// CreateHandover inserts h and replaces an older one of the same directory.
func (q *Queries) CreateHandover(h *models.Handover) error {
	if err := q.DeleteHandover(h.ProjectID, h.MemberID); err != nil {
		return err
	}
	return q.db.Create(h).Error
}

// DeleteHandover withdraws the handover of a directory, if there is one.
func (q *Queries) DeleteHandover(projectID, memberID int64) error {
	q.Touch("project", projectID)
	return q.db.Where("project_id = ? AND member_id = ?", projectID, memberID).Delete(&models.Handover{}).Error
}

// Handover finds the handover of a former member's directory. Its recipient may
// have left since.
func (q *Queries) Handover(projectID, memberID int64) (h models.Handover, err error) {
	return h, found(q.db.Where("project_id = ? AND member_id = ?", projectID, memberID).Take(&h).Error, "handover")
}

// HandoversOf lists the handovers from and to a member.
func (q *Queries) HandoversOf(projectID, memberID int64) (list []models.Handover, err error) {
	err = q.db.Where("project_id = ? AND (member_id = ? OR to_member_id = ?)", projectID, memberID, memberID).Order("id").Find(&list).Error
	return list, err
}

// DirectoryUser returns the conditions of a member's access now.
func (q *Queries) DirectoryUser(projectID, memberID int64) (models.DirectoryUser, error) {
	list, err := q.DirectoryUsers(projectID, []int64{memberID})
	if err == nil && len(list) == 0 {
		err = models.NotFound("member")
	}
	if err != nil {
		return models.DirectoryUser{}, err
	}
	return list[0], nil
}

// DirectoryUserOf is DirectoryUser for the active membership of a user; without one it
// has no MemberID.
func (q *Queries) DirectoryUserOf(projectID, userID int64) (models.DirectoryUser, error) {
	m, err := q.Membership(projectID, userID)
	if err = models.IgnoreNotFound(err); err != nil {
		return models.DirectoryUser{}, err
	}
	if m.ID == 0 || !m.Active(q.Now()) {
		p, err := q.Project(AllProjects, projectID)
		return models.DirectoryUser{ProjectID: projectID, Ended: p.EndsAt != nil && !p.EndsAt.After(q.Now())}, models.IgnoreNotFound(err)
	}
	return q.DirectoryUser(projectID, m.ID)
}

// DirectoryUsers is DirectoryUser for several members, by id.
func (q *Queries) DirectoryUsers(projectID int64, members []int64) ([]models.DirectoryUser, error) {
	var rows []struct {
		models.Member
		EndsAt                       *time.Time
		ReadOnlyAt, MemberReadOnlyAt *time.Time
		AwaitsTakeover               bool
	}
	err := q.db.Table("members").Select("members.*, projects.ends_at, file_takeovers.project_id IS NOT NULL AS awaits_takeover, storage_use.read_only_at, member_storage_use.read_only_at AS member_read_only_at").
		Joins("JOIN projects ON projects.id = members.project_id").
		Joins("LEFT JOIN file_takeovers ON file_takeovers.project_id = members.project_id AND file_takeovers.begun_at IS NULL").
		Joins("LEFT JOIN storage_use ON storage_use.project_id = members.project_id").
		Joins("LEFT JOIN member_storage_use ON member_storage_use.member_id = members.id").
		Where("members.project_id = ? AND members.id IN ?", projectID, members).Order("members.id").Find(&rows).Error
	if err != nil {
		return nil, err
	}
	now, at := q.Now(), map[int64]int{}
	past := func(t *time.Time) bool { return t != nil && !now.Before(*t) }
	list := make([]models.DirectoryUser, len(rows))
	for i, m := range rows {
		list[i] = models.DirectoryUser{ProjectID: projectID, MemberID: m.ID, RoleID: m.RoleID, Ended: past(m.EndsAt), Left: !m.Active(now),
			Exceeded: past(m.ReadOnlyAt) || past(m.MemberReadOnlyAt), AwaitsTakeover: m.AwaitsTakeover}
		at[m.ID] = i
	}
	var inherited []models.Handover
	err = q.db.Joins("JOIN members ON members.id = handovers.member_id").
		Where("handovers.to_member_id IN ? AND NOT "+isActive("members"), members, now).Order("handovers.member_id").Find(&inherited).Error
	for _, h := range inherited {
		if i, ok := at[h.ToMemberID]; ok {
			list[i].Inherits = append(list[i].Inherits, h.MemberID)
		}
	}
	if err != nil {
		return list, err
	}
	return list, q.curated(projectID, members, list, at)
}
