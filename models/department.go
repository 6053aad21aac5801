package models

import "time"

// Department groups users for lists and sums. It gives no rights.
type Department struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"created_at"`
}

// DepartmentSums are the totals of a department's users.
type DepartmentSums struct {
	People   int64     // including disabled accounts
	Projects int64     // with at least one of them as a present member
	InUse    Resources // by their live workspaces
}

// Day is the begin of a time's day in UTC.
func Day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
