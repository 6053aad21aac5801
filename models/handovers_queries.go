package models

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
	MemberID  int64    // 0: not a member
	RoleID    int64    // 0: none, of a former member
	Ended     bool     // the project's period of use is over
	Left      bool     // the member's membership is over
	Exceeded  bool     // a storage limit was exceeded for longer than the period of grace
	Inherits  []int64  // former members whose directories were handed over to this one
	Curates   []string // public directories

	// AwaitsTakeover: the files of the project still have the one owner of before.
	AwaitsTakeover bool
}

// Mount is one shared directory as a workspace sees it.
type Mount struct {
	Source   string // on the host or on the storage server
	Target   string // in the workspace
	ReadOnly bool
}

// MountsDigest identifies a set of mounts.
func MountsDigest(mounts []Mount) string {
	h := sha256.New()
	for _, m := range mounts {
		fmt.Fprintf(h, "%q %q %t\n", m.Source, m.Target, m.ReadOnly)
	}
	return hex.EncodeToString(h.Sum(nil))
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

// DirectoryUser returns the conditions of a member's access now.
func (q *Queries) DirectoryUser(projectID, memberID int64) (DirectoryUser, error) {
	list, err := q.DirectoryUsers(projectID, []int64{memberID})
	if err == nil && len(list) == 0 {
		err = NotFound("member")
	}
	if err != nil {
		return DirectoryUser{}, err
	}
	return list[0], nil
}

// DirectoryUserOf is DirectoryUser for the active membership of a user; without one it
// has no MemberID.
func (q *Queries) DirectoryUserOf(projectID, userID int64) (DirectoryUser, error) {
	m, err := q.Membership(projectID, userID)
	if err = IgnoreNotFound(err); err != nil || m.ID == 0 || !m.Active(q.Now()) {
		return DirectoryUser{ProjectID: projectID}, err
	}
	return q.DirectoryUser(projectID, m.ID)
}

// DirectoryUsers is DirectoryUser for several members, by id.
func (q *Queries) DirectoryUsers(projectID int64, members []int64) ([]DirectoryUser, error) {
	var rows []struct {
		Member
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
	list := make([]DirectoryUser, len(rows))
	for i, m := range rows {
		list[i] = DirectoryUser{ProjectID: projectID, MemberID: m.ID, RoleID: m.RoleID, Ended: past(m.EndsAt), Left: !m.Active(now),
			Exceeded: past(m.ReadOnlyAt) || past(m.MemberReadOnlyAt), AwaitsTakeover: m.AwaitsTakeover}
		at[m.ID] = i
	}
	var inherited []Handover
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
