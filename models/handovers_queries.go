package models

import (
	"time"

	"gorm.io/gorm"
)

// Handover gives the directory of a member who has left to another member.
type Handover struct {
	ID         int64     `json:"-"`
	ProjectID  int64     `json:"project_id"`
	MemberID   int64     `json:"member_id"`    // who left
	ToMemberID int64     `json:"to_member_id"` // the heir
	ByID       *int64    `json:"by_id"`
	At         time.Time `json:"at"`
}

// Holder is whom the shared directories are seen by: a member of a project,
// with what decides over writing.
type Holder struct {
	ProjectID int64
	MemberID  int64
	Ended     bool    // the project's period of use is over
	Left      bool    // the member's participation is over
	Inherits  []int64 // members who have left, whose directories were handed to this one
}

// Leaver is a member whose participation is over, and who has the directory
// now.
type Leaver struct {
	Member
	UserName  string
	UserEmail string
	HeirID    *int64 // present member who has the directory; nil: nobody
	HeirName  string
	GivenAt   *time.Time // when it was handed over; also where the heir's participation is over since
}

// LeftAt is when the participation ended.
func (l Leaver) LeftAt() time.Time {
	if l.RemovedAt != nil && (l.Until == nil || l.RemovedAt.Before(*l.Until)) {
		return *l.RemovedAt
	}
	return *l.Until
}

// Heir is a present member to whom a directory can be handed.
type Heir struct {
	ID        int64
	UserName  string
	UserEmail string
}

// isActive is the condition that a membership gives rights at a moment, which
// it takes as its parameter.
func isActive(table string) string {
	return "(" + table + ".removed_at IS NULL AND (" + table + ".until IS NULL OR " + table + ".until > ?))"
}

// Leavers lists the members of a project whose participation is over, by id.
func (q *Queries) Leavers(scope Scope, projectID int64, page Page) (list []Leaver, err error) {
	err = q.leavers(scope, projectID).Where("members.id > ?", page.After).Order("members.id").Limit(page.limit()).Find(&list).Error
	return list, err
}

// Leaver finds a member of a project whose participation is over.
func (q *Queries) Leaver(scope Scope, projectID, id int64) (l Leaver, err error) {
	return l, found(q.leavers(scope, projectID).Where("members.id = ?", id).Take(&l).Error, "member")
}

func (q *Queries) leavers(scope Scope, projectID int64) *gorm.DB {
	now := q.Now()
	return scope.projects(q.db.Table("members"), "members.project_id").
		Select("members.*, users.name AS user_name, users.email AS user_email, heirs.id AS heir_id, COALESCE(heir_users.name, '') AS heir_name, handovers.at AS given_at").
		Joins("JOIN users ON users.id = members.user_id").
		Joins("LEFT JOIN handovers ON handovers.member_id = members.id").
		Joins("LEFT JOIN members heirs ON heirs.id = handovers.to_member_id AND "+isActive("heirs"), now).
		Joins("LEFT JOIN users heir_users ON heir_users.id = heirs.user_id").
		Where("members.project_id = ? AND NOT "+isActive("members"), projectID, now)
}

// Heirs lists a project's active members, the first thousand by name.
func (q *Queries) Heirs(projectID int64) (list []Heir, err error) {
	err = q.db.Table("members").Select("members.id, users.name AS user_name, users.email AS user_email").
		Joins("JOIN users ON users.id = members.user_id").
		Where("members.project_id = ? AND "+isActive("members"), projectID, q.Now()).
		Order("users.name, members.id").Limit(1000).Find(&list).Error
	return list, err
}

// CreateHandover inserts h in place of one to somebody who has left as well.
func (q *Queries) CreateHandover(h *Handover) error {
	if err := q.DeleteHandover(h.ProjectID, h.MemberID); err != nil {
		return err
	}
	return q.db.Create(h).Error
}

// DeleteHandover takes the directory of a leaver back, if somebody has it.
func (q *Queries) DeleteHandover(projectID, memberID int64) error {
	q.Touch("project", projectID)
	return q.db.Where("project_id = ? AND member_id = ?", projectID, memberID).Delete(&Handover{}).Error
}

// Handover finds to whom the directory of a leaver was handed, who may have
// left since.
func (q *Queries) Handover(projectID, memberID int64) (h Handover, err error) {
	return h, found(q.db.Where("project_id = ? AND member_id = ?", projectID, memberID).Take(&h).Error, "handover")
}

// HandoversOf lists what was handed over of a member's and to the member.
func (q *Queries) HandoversOf(projectID, memberID int64) (list []Handover, err error) {
	err = q.db.Where("project_id = ? AND (member_id = ? OR to_member_id = ?)", projectID, memberID, memberID).Order("id").Find(&list).Error
	return list, err
}

// Holder tells what decides over a member's writing now.
func (q *Queries) Holder(projectID, memberID int64) (h Holder, err error) {
	var row struct {
		EndsAt    *time.Time
		RemovedAt *time.Time
		Until     *time.Time
	}
	err = q.db.Table("members").Select("projects.ends_at, members.removed_at, members.until").
		Joins("JOIN projects ON projects.id = members.project_id").
		Where("members.project_id = ? AND members.id = ?", projectID, memberID).Take(&row).Error
	if err != nil {
		return h, found(err, "member")
	}
	now := q.Now()
	h = Holder{ProjectID: projectID, MemberID: memberID, Ended: row.EndsAt != nil && !now.Before(*row.EndsAt),
		Left: !Member{RemovedAt: row.RemovedAt, Until: row.Until}.Active(now)}
	return h, q.db.Table("handovers").Joins("JOIN members ON members.id = handovers.member_id").
		Where("handovers.to_member_id = ? AND NOT "+isActive("members"), memberID, now).
		Order("handovers.member_id").Pluck("handovers.member_id", &h.Inherits).Error
}
