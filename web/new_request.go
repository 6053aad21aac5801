package web

import (
	"context"
	"time"

	"weir/models"
)

// NewRequestView is a form for a new request; without a Kind it offers the kinds,
// without a Project those that it could be about.
//
// Fields: reason, and those of the kind behind its name, such as project.* and
// quota.* (see models.RequestKinds).
type NewRequestView struct {
	Form      Form
	Kind      string
	ProjectID int64
	Project   string
	Projects  []Option
	Roles     []RoleChoice
	Now       *models.Resources // the quota or limit as it is
	Remaining *models.Resources // of the project's quota
	Ends      *time.Time        // the present end; nil: none
	Preview   *PreviewView
}

func (v NewRequestView) title(ctx context.Context) string {
	if v.Kind == "" {
		return T(ctx, "New request")
	}
	return kindWord(ctx, v.Kind)
}

// needsProject reports whether the project has not been selected yet.
func (v NewRequestView) needsProject() bool {
	return v.ProjectID == 0 && v.Kind != models.RequestProject && v.Kind != models.RequestJoin
}

// kindWords are the names of the kinds of requests.
var kindWords = map[string]models.Text{
	models.RequestProject:  models.Say("New project"),
	models.RequestJoin:     models.Say("Join a project"),
	models.RequestLimit:    models.Say("Higher limit"),
	models.RequestRole:     models.Say("New role"),
	models.RequestDeadline: models.Say("Longer membership"),
	models.RequestQuota:    models.Say("More project quota"),
	models.RequestPeriod:   models.Say("Longer period of use"),
}

// kindHints describe the purpose of each kind and its deciders.
var kindHints = map[string]models.Text{
	models.RequestProject:  models.Say("For a team with its own quota. Decided by a platform administrator."),
	models.RequestJoin:     models.Say("By exact project name or link. Decided by the project's managers."),
	models.RequestLimit:    models.Say("Members of your role can use more at once. Decided by the project's managers."),
	models.RequestRole:     models.Say("With its own limit and permission. Decided by the project's managers."),
	models.RequestDeadline: models.Say("Stay in a project for longer. Decided by the project's managers."),
	models.RequestQuota:    models.Say("All members together can use more. Decided by a platform administrator."),
	models.RequestPeriod:   models.Say("Use a project for longer. Decided by a platform administrator."),
}

func kindWord(ctx context.Context, kind string) string { return TT(ctx, kindWords[kind]) }

func newRequestPath(kind string, project int64) string {
	if project == 0 {
		return "/requests/new?kind=" + kind
	}
	return "/requests/new?kind=" + kind + "&project_id=" + number(project)
}

// requestLabels are the inputs of requests that are called otherwise elsewhere.
var requestLabels = map[string]string{"join.name": "join_name", "reason": "request_reason"}

// amountsIn are the inputs of the resources that a kind of request is about.
func amountsIn(kind string) []string {
	switch kind {
	case models.RequestProject, models.RequestQuota:
		return resourceFields(kind + ".quota")
	case models.RequestRole, models.RequestLimit:
		return resourceFields(kind + ".limit")
	}
	return nil
}
