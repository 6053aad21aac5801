package models

import "time"

// FileOperation is the intent of an operation on files in progress.
type FileOperation struct {
	ID        int64
	ProjectID int64
	UserID    *int64
	Kind      string // an action of the audit
	Path      FilePath
	Target    FilePath // of a move
	Reserved  int64    // bytes
	MemberID  int64    // whose bytes it writes; 0: the project's
	Inode     int64    // of what it puts at its path; 0 before
	ItemID    int64    // in the trash, that it restores or removes for good
	ExpiresAt time.Time
}

// KeptFile is a deleted file or directory in the trash, or an overwritten version.
type KeptFile struct {
	ID        int64 `gorm:"primaryKey;autoIncrement:false"` // of the operation
	ProjectID int64
	UserID    *int64 // who deleted or overwrote it
	Path      FilePath
	Bytes     int64
	At        time.Time
}

// TrashedFile is a deleted file or directory.
type TrashedFile struct {
	KeptFile
	Directory bool
}

// FileVersion is the content of a file before it was overwritten.
type FileVersion struct{ KeptFile }
