package web

import (
	"context"
	"net/url"

	"github.com/a-h/templ"

	"weir/models"
)

// AccessCheckView checks a permission of an account and shows the result.
//
// Fields: email, project_name, right.
type AccessCheckView struct {
	Form        Form
	Rights      []string     // to choose from
	AccessCheck *AccessCheck // nil before the first check
}

// AccessCheck is the result of a check, with the steps that led to it.
type AccessCheck struct {
	Person    string
	Project   string // empty for the platform
	ProjectID int64
	Right     string
	May       bool
	Steps     []AccessCheckStep
}

// AccessCheckStep is one step of the chain.
type AccessCheckStep struct {
	Text   models.Text
	Effect string // yes, no, or nothing by itself
}

var accessCheckFields = map[string]field{
	"email":        {Label: models.Say("Person"), Hint: models.Say("Email address of the account. Leave empty for yourself."), Type: "email"},
	"project_name": {Label: models.Say("Project"), Hint: models.Say("Exact name. Leave empty for the platform.")},
	"right":        {Label: models.Say("Permission"), Hint: models.Say("Resource type and action.")},
}

func (v AccessCheck) title(ctx context.Context) string {
	where := v.Project
	if v.ProjectID == 0 {
		where = T(ctx, "the platform")
	}
	if v.May {
		return T(ctx, "Allowed: %s has permission %s in %s.", v.Person, v.Right, where)
	}
	return T(ctx, "Not allowed: %s does not have permission %s in %s.", v.Person, v.Right, where)
}

// accessPath is the address of the access check of a person in a project; 0 leaves
// either open.
func accessPath(person, project int64) templ.SafeURL {
	q := url.Values{}
	if person != 0 {
		q.Set("user_id", number(person))
	}
	if project != 0 {
		q.Set("project_id", number(project))
	}
	return templ.SafeURL("/access?" + q.Encode())
}
