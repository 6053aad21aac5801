package models

import "time"

// Installation says which installation a database is of. Each restore of a backup is a
// further generation of it.
type Installation struct {
	ID         int64 // 1: there is one row
	UID        string
	Generation int64
	CreatedAt  time.Time
	BackupAt   *time.Time // when the backup was made that this generation is of; nil: of none
	RestoredAt *time.Time
}

// TableName is the table's name.
func (Installation) TableName() string { return "installation" }

// Foreign is what runs on this machine or in this cluster, and was started by a server of
// another generation of the installation, or of a copy of its data directory.
type Foreign struct {
	Owner      string // the ID and generation of the installation; empty: of before these were recorded
	Place      string // the directory or the namespace where it runs
	Workspaces int    // how many, and runs
}
