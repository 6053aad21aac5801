package web

import (
	"context"
	"net/url"
	"time"

	"weir/models"
)

// AccountingView is what shares of GPUs took over a span of time, by group.
//
// Fields: from, until, group.
type AccountingView struct {
	UsageRange
	Project  models.Project // zero: all
	Group    string
	OwnOnly  bool // only the reader's own shares are counted
	Total    AccountingRow
	Rows     []AccountingRow
	Steps    []AccountingStep
	Currency string // of the costs; empty: no prices are set
	Next     string // address of the next page, or empty
}

// AccountingRow is the sum of a group of shares, in GPU cores times milliseconds.
type AccountingRow struct {
	Key                            int64
	Name                           string
	CoreMS, ReservedMS, UnpricedMS int64
	ReservedUnusedMS               int64 // what was reserved besides, and nothing used
	Cost                           int64 // of the priced part, in millionths of the currency
	Simulated                      bool
	MeasuredMS, UsedMS             int64
}

// AccountingStep is one of equally long steps.
type AccountingStep struct {
	From   time.Time
	CoreMS int64
}

// accountingGroups are the groups that can be chosen, with what they are called.
var accountingGroups = []struct {
	name  string
	label models.Text
}{{"project", models.Say("Project")}, {"member", models.Say("Member")}, {"model", models.Say("GPU model")},
	{"holder", models.Say("Used by")},
	{"billing", models.Say("Billing model")}}

// groups are the groups that can be chosen on the page.
func (v AccountingView) groups(ctx context.Context) (list []Option) {
	for _, g := range accountingGroups {
		if g.name != "project" || v.Project.ID == 0 {
			list = append(list, Option{g.name, TT(ctx, g.label)})
		}
	}
	return list
}

func (v AccountingView) groupLabel(ctx context.Context) string {
	for _, g := range accountingGroups {
		if g.name == v.Group {
			return TT(ctx, g.label)
		}
	}
	return ""
}

// form is the span and the group, as chosen.
func (v AccountingView) form() Form {
	f := v.dates()
	f.Values["group"] = v.Group
	return f
}

// file is the address of the report as a CSV file.
func (v AccountingView) file() string {
	q := url.Values{"group": {v.Group}, "from": {timestamp(v.From)}, "until": {timestamp(v.Until)}}
	return "/api/v1" + v.Path + ".csv?" + q.Encode()
}

// title is what the report is about.
func (v AccountingView) title(ctx context.Context) string {
	if v.Project.ID == 0 {
		return T(ctx, "Accounting")
	}
	return T(ctx, "Accounting of %s", v.Project.Name)
}

// summary is the report in one sentence.
func (v AccountingView) summary(ctx context.Context) string {
	if v.Currency == "" {
		return T(ctx, "%s GPU core hours were allocated.", models.CoreHours(v.Total.CoreMS))
	}
	return T(ctx, "%s GPU core hours were allocated, for %s.", models.CoreHours(v.Total.CoreMS), models.Money(v.Total.Cost, v.Currency))
}

// name is what a group is called.
func (v AccountingView) name(ctx context.Context, r AccountingRow) string {
	switch {
	case v.Group == "billing":
		return begun(ctx, models.Billing(r.Name).Words())
	case v.Group == "holder" && r.Name == string(models.HolderWorkspace):
		return T(ctx, "Workspaces")
	case v.Group == "holder" && r.Name == string(models.HolderRun):
		return T(ctx, "Runs")
	case v.Group == "holder" && r.Name == string(models.HolderDeployment):
		return T(ctx, "Deployments")
	}
	return r.Name
}

// link is the report of a group's project, or empty.
func (v AccountingView) link(r AccountingRow) string {
	if v.Group != "project" || r.Key == 0 {
		return ""
	}
	return projectPath(r.Key) + "/accounting" + v.query()
}

// cost is what a group cost; a dash if nothing of it has a price.
func (v AccountingView) cost(r AccountingRow) string {
	if r.CoreMS > 0 && r.UnpricedMS == r.CoreMS {
		return "–"
	}
	return models.Money(r.Cost, v.Currency)
}

// used is the measured part of a group, and how much of it was used.
func (r AccountingRow) used(ctx context.Context) string {
	if r.MeasuredMS == 0 {
		return T(ctx, "not measured")
	}
	return T(ctx, "%s of %s", models.CoreHours(r.UsedMS), models.CoreHours(r.MeasuredMS))
}

func (v AccountingView) chart(ctx context.Context) Chart {
	allocated := Line{Class: "mean"}
	for _, s := range v.Steps {
		allocated.Values = append(allocated.Values, s.CoreMS)
	}
	top := max(1, largest([]Line{allocated}))
	title := T(ctx, "GPU core hours allocated per interval")
	return Chart{ID: "chart-core-hours", Title: title, Top: top, Say: models.CoreHours, From: v.From, To: v.Until,
		Lines: []Line{allocated}, Summary: T(ctx, "%s over %s: at most %s, in total %s.", title, daysWord(ctx, v.days()),
			models.CoreHours(max(0, largest([]Line{allocated}))),
			models.CoreHours(v.Total.CoreMS))}
}

// PricesView is the price list.
type PricesView struct {
	Rows []models.GPUPrice // by model, billing model and time
	Now  time.Time
}

// state is whether a price is in force.
func (v PricesView) state(ctx context.Context, i int) string {
	p := v.Rows[i]
	switch {
	case p.ValidFrom.After(v.Now):
		return T(ctx, "planned")
	case i+1 < len(v.Rows) && v.Rows[i+1].Model == p.Model && v.Rows[i+1].Billing == p.Billing && !v.Rows[i+1].ValidFrom.After(v.Now):
		return T(ctx, "replaced")
	}
	return T(ctx, "in force")
}

// PriceFormView sets a price. Fields: model, billing, micros, currency, valid_from.
type PriceFormView struct {
	Form   Form
	Models []string
}
