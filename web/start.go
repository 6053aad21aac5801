package web

// StartView creates a project with its first roles.
//
// Fields: name, members, quota.*.
type StartView struct {
	Form    Form
	Preview *PreviewView
}
