package models

import "time"

// StorageUse is the bytes that a project's files use.
type StorageUse struct {
	ProjectID  int64 `gorm:"primaryKey"`
	Used       int64
	Reserved   int64      // by operations in progress
	MeasuredAt *time.Time // when Used was last compared with the files
	ScanPath   ScanPath   // how far the measurement in progress has come; nil: there is none
	Scanned    int64      // what it has found until there
	ReadOnlyAt *time.Time // over the quota: mounts are read-only from then on; nil: it is not
}

// TableName is the name of the table.
func (StorageUse) TableName() string { return "storage_use" }

// MemberStorageUse is the bytes of a member's files.
type MemberStorageUse struct {
	MemberID   int64 `gorm:"primaryKey;autoIncrement:false"`
	Used       int64
	Scanned    int64
	ReadOnlyAt *time.Time // over the limit of the role
}

// TableName is the name of the table.
func (MemberStorageUse) TableName() string { return "member_storage_use" }

// MemberStorage is what a present member uses and may use.
type MemberStorage struct {
	MemberID   int64
	UserName   string
	Used       int64
	LimitMiB   int64
	ReadOnlyAt *time.Time
}

// UsedMiB is the use, rounded up.
func (m MemberStorage) UsedMiB() int64 { return (m.Used + 1<<20 - 1) >> 20 }

// UsedMiB is the use, rounded up.
func (u StorageUse) UsedMiB() int64 { return (u.Used + 1<<20 - 1) >> 20 }

// StorageShares is bytes by the member whose they are; 0: only the project's.
type StorageShares map[int64]int64

// Sum is all bytes.
func (s StorageShares) Sum() (sum int64) {
	for _, n := range s {
		sum += n
	}
	return sum
}

// Times is each number n times.
func (s StorageShares) Times(n int64) StorageShares {
	t := make(StorageShares, len(s))
	for member, bytes := range s {
		t[member] = n * bytes
	}
	return t
}

// ScanPath is the place of a directory in the order in which a measurement visits
// them. It compares as bytes.
type ScanPath = []byte

// StorageChange is a change of the bytes in a directory.
type StorageChange struct {
	At    ScanPath
	Bytes StorageShares
}

// StorageExcess is a member over the limit of the role, or a project over its quota.
type StorageExcess struct {
	ProjectID   int64
	ProjectName string
	MemberID    int64 // 0: the project
	UserID      int64 // of the member
	Used        int64
	LimitMiB    int64
	ReadOnlyAt  *time.Time // nil: it was not over so far
}

// Over reports whether the use exceeds the limit.
func (e StorageExcess) Over() bool { return !IsUnlimited(e.LimitMiB) && e.Used > e.LimitMiB<<20 }
