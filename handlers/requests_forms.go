package handlers

import (
	"strings"

	"weir/models"
	"weir/pool/requests"
	"weir/web"
)

// requested reads the requested, or approved, change of a kind; empty for an unknown kind.
// The field names are those of the REST input.
func (f *form) requested(kind string) (a models.Requested) {
	at := kind + "."
	project := func() int64 { return f.number(at + "project_id") }
	switch kind {
	case models.RequestProject:
		a.Project = &models.ProjectSpec{Name: f.text(at + "name"), Description: f.text(at + "description"), Quota: f.resources(at + "quota"),
			Limit: f.resources(at + "limit"), StartsAt: f.day(at + "starts_at"), EndsAt: f.lastDay(at + "ends_at")}
	case models.RequestQuota:
		a.Quota = &models.QuotaSpec{ProjectID: project(), Quota: f.resources(at + "quota")}
	case models.RequestRole:
		a.Role = &models.RoleSpec{ProjectID: project(), Name: f.text(at + "name"), Permission: f.text(at + "permission"),
			Permissions: f.permissions(at), Limit: f.resources(at + "limit"), AssignToRequester: f.bool(at + "assign_to_requester")}
	case models.RequestLimit:
		a.Limit = &models.LimitSpec{ProjectID: project(), RoleID: f.number(at + "role_id"), Limit: f.resources(at + "limit")}
	case models.RequestPeriod:
		a.Period = &models.PeriodSpec{ProjectID: project(), EndsAt: f.lastDay(at + "ends_at")}
	case models.RequestDeadline:
		a.Deadline = &models.DeadlineSpec{ProjectID: project(), Until: f.lastDay(at + "until")}
	case models.RequestJoin:
		a.Join = &models.JoinSpec{ProjectID: project(), Name: f.text(at + "name"), RoleID: f.number(at + "role_id"),
			Until: f.lastDay(at + "until")}
	}
	return a
}

// decision reads the decision on a request.
func (f *form) decision(requested models.Requested) requests.DecisionInput {
	in := requests.DecisionInput{Decision: f.text("decision"), Reason: f.text("reason"), Confirm: f.bool("confirm"), Version: f.version()}
	if in.Decision == requests.DecisionRefuse { // the other fields are ignored
		return in
	}
	in.Requested = f.requested(requested.Kind())
	return in
}

// putRequested sets the form to the requested change.
func putRequested(f web.Form, a models.Requested) {
	at := a.Kind() + "."
	switch {
	case a.Project != nil:
		f.Values[at+"name"], f.Values[at+"description"] = a.Project.Name, a.Project.Description
		putResources(f, at+"quota", a.Project.Quota.Resources())
		putResources(f, at+"limit", a.Project.Limit.Resources())
		putDay(f, at+"starts_at", a.Project.StartsAt)
		putLastDay(f, at+"ends_at", a.Project.EndsAt)
	case a.Quota != nil:
		putResources(f, at+"quota", a.Quota.Quota.Resources())
	case a.Role != nil:
		f.Values[at+"name"], f.Values[at+"permission"], f.Values[at+"permissions"] = a.Role.Name, a.Role.Permission,
			strings.Join(a.Role.Permissions, " ")
		if a.Role.AssignToRequester {
			f.Values[at+"assign_to_requester"] = "1"
		}
		putResources(f, at+"limit", a.Role.Limit.Resources())
	case a.Limit != nil:
		putResources(f, at+"limit", a.Limit.Limit.Resources())
	case a.Period != nil:
		putLastDay(f, at+"ends_at", a.Period.EndsAt)
	case a.Deadline != nil:
		putLastDay(f, at+"until", a.Deadline.Until)
	case a.Join != nil:
		putLastDay(f, at+"until", a.Join.Until)
	}
}
