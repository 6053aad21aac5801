package web

import (
	"context"
	"net/url"

	"github.com/a-h/templ"

	"weir/models"
)

// VerdictView asks whether somebody may do something, and shows the result.
//
// Fields: email, project_name, right.
type VerdictView struct {
	Form    Form
	Rights  []string // to choose from
	Verdict *Verdict // nil before the first check
}

// Verdict is the result of a check, with the steps that led to it.
type Verdict struct {
	Person    string
	PersonID  int64
	Project   string // empty for the platform
	ProjectID int64
	Right     string
	May       bool
	Steps     []VerdictStep
}

// VerdictStep is one step of the chain.
type VerdictStep struct {
	Text models.Text
	Says string // yes, no, or nothing by itself
}

var accessCheckFields = map[string]field{
	"email":        {Label: models.Say("Person"), Hint: models.Say("The address of the account. Empty: yourself."), Type: "email"},
	"project_name": {Label: models.Say("Project"), Hint: models.Say("The exact name. Empty: the platform.")},
	"right":        {Label: models.Say("Right"), Hint: models.Say("The kind of thing, and what is to be done with it.")},
}

func (v VerdictView) options(ctx context.Context) []Option {
	list := []Option{{"", T(ctx, "Choose a right")}}
	for _, right := range v.Rights {
		list = append(list, Option{right, right})
	}
	return list
}

func (v Verdict) title(ctx context.Context) string {
	where := v.Project
	if v.ProjectID == 0 {
		where = T(ctx, "the platform")
	}
	if v.May {
		return T(ctx, "Yes: %s may %s in %s.", v.Person, v.Right, where)
	}
	return T(ctx, "No: %s may not %s in %s.", v.Person, v.Right, where)
}

// accessPath is where it is answered what a person may do in a project; 0
// leaves either open.
func accessPath(person, project int64) templ.SafeURL {
	q := url.Values{}
	if person != 0 {
		q.Set("user", id(person))
	}
	if project != 0 {
		q.Set("project", id(project))
	}
	return templ.SafeURL("/access?" + q.Encode())
}
