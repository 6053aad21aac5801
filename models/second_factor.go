package models

import (
	"slices"
	"time"
)

// SecondFactor is the authenticator app of an account. Its secrets are encrypted.
type SecondFactor struct {
	UserID    int64  `gorm:"primaryKey"`
	Secret    string // empty: none is confirmed
	Step      int64  // of 30 seconds since 1970: that of the last accepted code
	NewSecret string // of an enrollment, until it is confirmed
	NewUntil  *time.Time
}

// Enrolling reports whether an enrollment can be confirmed now.
func (f SecondFactor) Enrolling(now time.Time) bool {
	return f.NewSecret != "" && f.NewUntil != nil && now.Before(*f.NewUntil)
}

// RecoveryCode signs in once in place of a code of the app.
type RecoveryCode struct {
	UserID int64
	Hash   string
}

// Audience is a set of accounts.
type Audience string

// Audiences of a policy.
const (
	NoOne          Audience = "none"
	Administrators Audience = "administrators"
	Everyone       Audience = "everyone"
)

// Audiences are all audiences, the smallest first.
var Audiences = []Audience{NoOne, Administrators, Everyone}

// Words is the audience's name for users.
func (a Audience) Words() Text {
	switch a {
	case Administrators:
		return Say("Administrators")
	case Everyone:
		return Say("Everyone")
	}
	return Say("No one")
}

// CheckAudience returns a problem unless the audience exists.
func CheckAudience(field string, a Audience, p *Problems) {
	if !slices.Contains(Audiences, a) {
		p.Add(field, "must be none, administrators or everyone")
	}
}

// SignInPolicy is what sign-in requires, on the whole platform.
type SignInPolicy struct {
	ID           int64    `json:"-"`
	SecondFactor Audience `json:"second_factor" enum:"none,administrators,everyone" doc:"who must have a second factor"`
	Version      int64    `json:"-"`
}

// TableName overrides gorm's plural.
func (SignInPolicy) TableName() string { return "sign_in_policy" }

// Requires reports whether an account must have a second factor. Accounts without a
// password sign in with an identity provider, which has its own rules.
func (p SignInPolicy) Requires(u User) bool {
	switch {
	case u.IsService() || u.PasswordHash == "":
		return false
	case p.SecondFactor == Administrators:
		return u.Admin
	}
	return p.SecondFactor == Everyone
}
