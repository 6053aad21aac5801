package models

import "time"

// Identity links an account to an identity provider's user. Issuer and Subject
// together identify the user permanently; the address does not, it can be
// reassigned.
type Identity struct {
	ID        int64
	UserID    int64
	Issuer    string
	Subject   string
	Email     string // as of the last sign-in
	Admin     bool   // the account is an administrator by a group
	CreatedAt time.Time
	SeenAt    time.Time // last sign-in
}

// IdentityMember marks a membership as given by an identity provider's group.
type IdentityMember struct {
	IdentityID int64 `gorm:"primaryKey"`
	MemberID   int64 `gorm:"primaryKey"`
}
