package models

import "time"

// Department is where people work, for lists and sums. It gives no right.
type Department struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"created_at"`
}

// DepartmentSums are what a department's people have.
type DepartmentSums struct {
	People   int64     // accounts, disabled ones too
	Projects int64     // in which at least one of them is a present member
	Held     Resources // by their workspaces, now
}

// Day is the begin of a moment's day in UTC.
func Day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }
