package web

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
	Links  []InvitationLink
}
