package store

import (
	"gorm.io/gorm/clause"

	"weir/models"
)

// CreateIdentity inserts i and sets its id. For an existing one it returns an
// error for which [Duplicate] is true.
func (q *Queries) CreateIdentity(i *models.Identity) error { return q.db.Create(i).Error }

// UpdateIdentity writes i.
func (q *Queries) UpdateIdentity(i *models.Identity) error {
	return q.db.Model(i).Select("email", "admin", "seen_at").Updates(i).Error
}

// IdentityBySubject finds an identity by its issuer and subject.
func (q *Queries) IdentityBySubject(issuer, subject string) (i models.Identity, err error) {
	if !storable(subject) {
		return i, models.NotFound("identity")
	}
	return i, found(q.db.Where("issuer = ? AND subject = ?", issuer, subject).Take(&i).Error, "identity")
}

// Identities lists an account's identities, by id.
func (q *Queries) Identities(userID int64) (list []models.Identity, err error) {
	return list, q.db.Where("user_id = ?", userID).Order("id").Limit(200).Find(&list).Error
}

// DeleteIdentity removes one of an account's identities. Memberships that it got
// from groups stay, as if a manager had added them.
func (q *Queries) DeleteIdentity(userID, id int64) (i models.Identity, err error) {
	if err := found(q.db.Where("user_id = ? AND id = ?", userID, id).Take(&i).Error, "identity"); err != nil {
		return i, err
	}
	return i, q.deleted(q.db.Delete(&models.Identity{}, id), "identity")
}

// MarkGrantedByIdentity records that a membership came from an identity's group.
func (q *Queries) MarkGrantedByIdentity(identityID, memberID int64) error {
	return q.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&models.IdentityMember{IdentityID: identityID, MemberID: memberID}).Error
}

// UnmarkGrantedByIdentity deletes such records of a member.
func (q *Queries) UnmarkGrantedByIdentity(memberID int64) error {
	return q.db.Where("member_id = ?", memberID).Delete(&models.IdentityMember{}).Error
}

// ProjectsGrantedByIdentity lists the projects in which an identity is a member by its groups.
func (q *Queries) ProjectsGrantedByIdentity(identityID int64) (projects []int64, err error) {
	err = q.db.Table("members").Joins("JOIN identity_members g ON g.member_id = members.id").
		Where("g.identity_id = ?", identityID).Order("members.project_id").Pluck("members.project_id", &projects).Error
	return projects, err
}

// GrantedByIdentity reports whether a membership came from an identity's group.
func (q *Queries) GrantedByIdentity(identityID, memberID int64) (bool, error) {
	return exists(q.db.Model(&models.IdentityMember{}).Where("identity_id = ? AND member_id = ?", identityID, memberID))
}
