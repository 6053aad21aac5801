package web

import (
	"context"

	"weir/models"
)

// AskView is a form for a new request; without a Kind it offers the kinds,
// without a Project those that it could be about.
//
// Fields: reason, and those of the kind behind its name, such as project.* and
// quota.* (see models.RequestKinds).
type AskView struct {
	Form      Form
	Kind      string
	ProjectID int64
	Project   string
	Projects  []Option
	Roles     []RoleChoice
	Now       *models.Resources // the quota or limit as it is
	Remaining *models.Resources // of the project's quota
	Ends      string            // the end as it is, for people
	Preview   *PreviewView
}

func (v AskView) title(ctx context.Context) string {
	if v.Kind == "" {
		return T(ctx, "Ask for something")
	}
	return kindWord(ctx, v.Kind)
}

// needsProject tells whether a project has still to be chosen.
func (v AskView) needsProject() bool {
	return v.ProjectID == 0 && v.Kind != models.AskForProject && v.Kind != models.AskForJoin
}

// kindWords name what can be requested.
var kindWords = map[string]models.Text{
	models.AskForProject:  models.Say("A new project"),
	models.AskForJoin:     models.Say("A place in a project"),
	models.AskForPeak:     models.Say("A larger peak"),
	models.AskForRole:     models.Say("A new role"),
	models.AskForDeadline: models.Say("A longer participation"),
	models.AskForQuota:    models.Say("More quota for a project"),
	models.AskForPeriod:   models.Say("A longer period of use"),
}

// kindHints say what each is for, and who decides.
var kindHints = map[string]models.Text{
	models.AskForProject:  models.Say("For a team with a quota of its own. A platform administrator decides."),
	models.AskForJoin:     models.Say("By the project's exact name or link. Its managers decide."),
	models.AskForPeak:     models.Say("The members of your role may hold more at once. A project's managers decide."),
	models.AskForRole:     models.Say("With a peak and a permission of its own. A project's managers decide."),
	models.AskForDeadline: models.Say("You stay in a project for longer. Its managers decide."),
	models.AskForQuota:    models.Say("All members together may hold more. A platform administrator decides."),
	models.AskForPeriod:   models.Say("A project can be used for longer. A platform administrator decides."),
}

func kindWord(ctx context.Context, kind string) string { return TT(ctx, kindWords[kind]) }

func askPath(kind string, project int64) string {
	if project == 0 {
		return "/requests/new?kind=" + kind
	}
	return "/requests/new?kind=" + kind + "&project_id=" + id(project)
}

// askLabels are the inputs of requests that are called otherwise elsewhere.
var askLabels = map[string]string{"join.name": "join_name", "reason": "request_reason", "role.mine": "role_mine"}

// amountsIn are the inputs of the resources that a kind of request is about.
func amountsIn(kind string) []string {
	switch kind {
	case models.AskForProject, models.AskForQuota:
		return resourceFields(kind + ".quota")
	case models.AskForRole, models.AskForPeak:
		return resourceFields(kind + ".peak")
	}
	return nil
}
