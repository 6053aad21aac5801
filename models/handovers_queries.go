package models

import (
	"time"

	"gorm.io/gorm"
)

// Handover gives the directory of a former member to a present one.
type Handover struct {
	ID         int64     `json:"-"`
	ProjectID  int64     `json:"project_id"`
	MemberID   int64     `json:"member_id"`    // the former member
	ToMemberID int64     `json:"to_member_id"` // the recipient
	ByID       *int64    `json:"by_id"`
	At         time.Time `json:"at"`
}

// DirectoryUser is a member of a project with the conditions of write access to shared
// directories.
type DirectoryUser struct {
	ProjectID int64
	MemberID  int64
	Ended     bool    // the project's period of use is over
	Left      bool    // the member's membership is over
	Inherits  []int64 // former members whose directories were handed over to this one
}

// Mount is one shared directory as a workspace sees it.
type Mount struct {
	Source   string // on the host or on the storage server
	Target   string // in the workspace
	ReadOnly bool
}

// FormerMember is a former member, with the present recipient of the directory.
type FormerMember struct {
	Member
	UserName      string
	UserEmail     string
	RecipientID   *int64 // present member with write access; nil: none
	RecipientName string
	HandoverAt    *time.Time // when it was handed over, also to a recipient who has left since
}

// LeftAt is when the membership ended.
func (l FormerMember) LeftAt() time.Time {
	if l.RemovedAt != nil && (l.Until == nil || l.RemovedAt.Before(*l.Until)) {
		return *l.RemovedAt
	}
	return *l.Until
}

// Recipient is a present member who can receive a directory.
type Recipient struct {
	ID        int64
	UserName  string
	UserEmail string
}

// isActive is the condition that a membership is active at a time, its
// parameter.
func isActive(table string) string {
	return "(" + table + ".removed_at IS NULL AND (" + table + ".until IS NULL OR " + table + ".until > ?))"
}

// FormerMembers lists the former members of a project, by id.
func (q *Queries) FormerMembers(scope Scope, projectID int64, page Page) (list []FormerMember, err error) {
	return list, page.oldest(q.formerMembers(scope, projectID), "members.id").Find(&list).Error
}

// FormerMember finds a former member of a project.
func (q *Queries) FormerMember(scope Scope, projectID, id int64) (l FormerMember, err error) {
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
func (q *Queries) Recipients(projectID int64) (list []Recipient, err error) {
	err = q.db.Table("members").Select("members.id, users.name AS user_name, users.email AS user_email").
		Joins("JOIN users ON users.id = members.user_id").
		Where("members.project_id = ? AND "+isActive("members"), projectID, q.Now()).
		Order("users.name, members.id").Limit(1000).Find(&list).Error
	return list, err
}

// CreateHandover inserts h and replaces an older one of the same directory.
func (q *Queries) CreateHandover(h *Handover) error {
	if err := q.DeleteHandover(h.ProjectID, h.MemberID); err != nil {
		return err
	}
	return q.db.Create(h).Error
}

// DeleteHandover withdraws the handover of a directory, if there is one.
func (q *Queries) DeleteHandover(projectID, memberID int64) error {
	q.Touch("project", projectID)
	return q.db.Where("project_id = ? AND member_id = ?", projectID, memberID).Delete(&Handover{}).Error
}

// Handover finds the handover of a former member's directory. Its recipient may
// have left since.
func (q *Queries) Handover(projectID, memberID int64) (h Handover, err error) {
	return h, found(q.db.Where("project_id = ? AND member_id = ?", projectID, memberID).Take(&h).Error, "handover")
}

// HandoversOf lists the handovers from and to a member.
func (q *Queries) HandoversOf(projectID, memberID int64) (list []Handover, err error) {
	err = q.db.Where("project_id = ? AND (member_id = ? OR to_member_id = ?)", projectID, memberID, memberID).Order("id").Find(&list).Error
	return list, err
}

// DirectoryUser returns the conditions of a member's write access now.
func (q *Queries) DirectoryUser(projectID, memberID int64) (h DirectoryUser, err error) {
	var member struct {
		Member
		EndsAt *time.Time
	}
	err = q.db.Table("members").Select("members.*, projects.ends_at").
		Joins("JOIN projects ON projects.id = members.project_id").
		Where("members.project_id = ? AND members.id = ?", projectID, memberID).Take(&member).Error
	if err != nil {
		return h, found(err, "member")
	}
	now := q.Now()
	h = DirectoryUser{ProjectID: projectID, MemberID: memberID, Ended: member.EndsAt != nil && !now.Before(*member.EndsAt), Left: !member.Active(now)}
	return h, q.db.Table("handovers").Joins("JOIN members ON members.id = handovers.member_id").
		Where("handovers.to_member_id = ? AND NOT "+isActive("members"), memberID, now).
		Order("handovers.member_id").Pluck("handovers.member_id", &h.Inherits).Error
}
