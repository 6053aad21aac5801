package models

import "time"

// Curator may write in a public directory: a user, in any project, or all members of a
// project. One of the two is set.
type Curator struct {
	ID        int64
	Directory string
	UserID    *int64
	ProjectID *int64
	CreatedAt time.Time
}

// CuratorView is a curator with its name: the user's and the email address, or the
// project's.
type CuratorView struct {
	Curator     `gorm:"embedded"`
	UserName    string
	Email       string
	ProjectName string
}

// Name is that of the user or the project.
func (c CuratorView) Name() string { return c.UserName + c.ProjectName }
