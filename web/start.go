package web

import "time"

// StartView creates a project with its first roles.
//
// Fields: name, members, emails, quota.*.
type StartView struct {
	Form    Form
	Preview *PreviewView
}

// StartedView shows, once, the invitations to a project that was just created.
type StartedView struct {
	Name   string // of the project
	Launch string // address of the launch of a workspace in it
	ByMail bool   // the links were also sent
	Links  []StartedLink
}

// StartedLink is the invitation of an email address.
type StartedLink struct {
	Email, URL string
	ExpiresAt  time.Time
}
