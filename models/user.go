package models

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// User is an account: of a person, or a service account, with which programs act in one
// project.
type User struct {
	ID                int64
	Email             string // of a service account its identifier
	Name              string
	PasswordHash      string
	Admin             bool // platform administrator
	Auditor           bool // sees everything on the platform and changes nothing
	Disabled          bool
	EmailUnconfirmed  bool // no one has shown that the person has the address
	DepartmentID      *int64
	TimeZone          string     // in which pages and emails show times, such as Europe/Berlin; empty: that of the browser
	SecondFactorAt    *time.Time // when it was enabled; nil: the account has none
	SessionGeneration int64      // sessions of an earlier generation are no longer valid
	Version           int64
	CreatedAt         time.Time
}

// ServiceAccountPrefix begins the identifiers of service accounts. No email address does:
// they contain no @, so no input for an address names one, and none can sign in, be
// invited or get mail.
const ServiceAccountPrefix = "serviceaccount:"

// ServiceAccountID is the identifier of a service account of a project.
func ServiceAccountID(project int64, name string) string {
	return fmt.Sprintf("%s%d:%s", ServiceAccountPrefix, project, name)
}

// IsServiceAccount reports whether the email of an account is such an identifier.
func IsServiceAccount(email string) bool { return strings.HasPrefix(email, ServiceAccountPrefix) }

// IsService reports whether the account is a service account.
func (u User) IsService() bool { return IsServiceAccount(u.Email) }

// AccessToken lets a program act as its user until it expires. Only the hash of
// the secret is stored.
type AccessToken struct {
	ID         int64
	UserID     int64
	Name       string
	Hash       string
	Scopes     []TokenScope `gorm:"serializer:json"`
	ExpiresAt  time.Time
	LastUsedAt *time.Time
	CreatedAt  time.Time

	LastUsedFrom string // the address of the client then; empty: not known
}

// Session is a browser's session; Token is hashed. One in which nobody is signed in has no
// user.
type Session struct {
	Token      string `gorm:"primaryKey"`
	Data       []byte
	ExpiresAt  time.Time
	UserID     *int64
	Generation int64  // of the user's sessions
	Address    string // of the client, when it began
	UserAgent  string // of the browser, when it began
	BeganAt    *time.Time
	UsedAt     *time.Time // within minutes; nil: not since it began
}

// ID tells the sessions of a person apart: the first 48 bits of the hash.
func (s Session) ID() int64 {
	id, _ := strconv.ParseInt(s.Token[:min(len(s.Token), 12)], 16, 64) // 0 for what is no hash
	return id
}

// OneTimeToken is a single-use secret: of a one-time link, or for opening a workspace.
type OneTimeToken struct {
	Hash         string `gorm:"primaryKey"`
	Purpose      string // setup, open, invitation, password
	UserID       *int64
	WorkspaceID  *int64
	InvitationID *int64
	Session      string
	ExpiresAt    time.Time
}

// VisitCookie gives a browser access to a workspace.
type VisitCookie struct {
	Secret  string    // the value of the cookie
	Expires time.Time // of the cookie
	Path    string    // of the first page, such as /tree
}

// Visit is a browser's session in a workspace; Hash is of its cookie.
type Visit struct {
	Hash              string `gorm:"primaryKey"`
	WorkspaceID       int64
	UserID            int64
	SessionGeneration int64
	Session           string // hash of the portal session or access token that began it, and with which it ends
	ExpiresAt         time.Time
}
