package models

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
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

// PathAccess is the access of a member to a path and what is below it, down to the next
// path with another.
type PathAccess struct {
	Path   FilePath   `json:"path"`
	Access FileAccess `json:"access"`
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
