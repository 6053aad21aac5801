package models

import "time"

// Identity ties an account to a person whom a provider of sign-in knows.
// Issuer and Subject together name the person, for ever; the address does
// not, for it may be given to somebody else.
type Identity struct {
	ID        int64
	UserID    int64
	Issuer    string
	Subject   string
	Email     string // as the provider said it last
	Admin     bool   // a group made the account an administrator
	CreatedAt time.Time
	SeenAt    time.Time // when it last signed in
}

// IdentityMember marks a member's place in a project as given by a group.
type IdentityMember struct {
	IdentityID int64 `gorm:"primaryKey"`
	MemberID   int64 `gorm:"primaryKey"`
}
