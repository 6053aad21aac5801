package models

import "time"

// User is an account.
type User struct {
	ID                int64
	Email             string
	Name              string
	PasswordHash      string
	Admin             bool // platform administrator
	Auditor           bool // sees everything on the platform and changes nothing
	Disabled          bool
	DepartmentID      *int64
	SessionGeneration int64 // sessions of an earlier generation are no longer valid
	Version           int64
	CreatedAt         time.Time
}

// AccessToken lets a program act as its user until it expires. Only the hash of
// the secret is stored.
type AccessToken struct {
	ID         int64
	UserID     int64
	Name       string
	Hash       string
	ExpiresAt  time.Time
	LastUsedAt *time.Time
	CreatedAt  time.Time
}

// Session is a browser's session; Token is hashed.
type Session struct {
	Token     string `gorm:"primaryKey"`
	Data      []byte
	ExpiresAt time.Time
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

// Visit is a browser's session in a workspace; Hash is of its cookie.
type Visit struct {
	Hash              string `gorm:"primaryKey"`
	WorkspaceID       int64
	UserID            int64
	SessionGeneration int64
	Session           string // hash of the portal session or access token that began it, and with which it ends
	ExpiresAt         time.Time
}
