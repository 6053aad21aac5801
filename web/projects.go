package web

import (
	"context"
	"net/url"
	"time"

	"weir/models"
)

// ProjectsView lists the projects that the reader may see.
//
// Fields: q, state.
type ProjectsView struct {
	Form Form
	Sort string // as in store.ProjectSorts; empty: by id
	Down bool   // the largest first
	Rows []ProjectRow
	Mine bool   // the reader has a role in some of them
	Many bool   // there are more than one look finds
	Next string // address of the next page, empty on the last
}

// ProjectRow is a project in the list.
type ProjectRow struct {
	ID         int64
	Name       string
	Role       string // mine, or empty
	Members    int64
	Workspaces int64 // live
	InUse      models.Resources
	Allocated  models.Resources
	Quota      models.Resources
	StartsAt   time.Time
	EndsAt     *time.Time
	Active     bool
}

// projectFields are the inputs of the list's search.
var projectFields = map[string]field{
	"q":     {Label: models.Say("Name"), Hint: models.Say("Matches any part of the name."), Type: "search"},
	"state": {Label: models.Say("Period")},
}

// projectStates are the options of the filter by period of use.
func projectStates(ctx context.Context) []Option {
	return []Option{{"", T(ctx, "any")}, {models.ProjectsActive, T(ctx, "now")},
		{models.ProjectsPlanned, T(ctx, "not started")}, {models.ProjectsEnded, T(ctx, "ended")}}
}

// Filtered reports whether the list is filtered.
func (v ProjectsView) Filtered() bool {
	return v.Form.Value("q") != "" || v.Form.Value("state") != ""
}

// query is the address of the same choice in another order.
func (v ProjectsView) query(sort string, down bool) string {
	q := url.Values{}
	for name, text := range map[string]string{"q": v.Form.Value("q"), "state": v.Form.Value("state"), "sort": sort} {
		if text != "" {
			q.Set(name, text)
		}
	}
	if down {
		q.Set("order", "desc")
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// sortsDown reports whether a click on a column's head sorts in descending order, which
// is the default for numbers.
func (v ProjectsView) sortsDown(sort string, number bool) bool {
	if v.Sort == sort {
		return !v.Down
	}
	return number
}

func (v ProjectsView) sorted(sort string) string {
	switch {
	case v.Sort != sort:
		return "none"
	case v.Down:
		return "descending"
	}
	return "ascending"
}

func (v ProjectsView) arrow(sort string) string {
	return map[string]string{"none": "", "descending": " ↓", "ascending": " ↑"}[v.sorted(sort)]
}
