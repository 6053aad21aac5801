package web

import (
	"cmp"
	"context"
	"maps"
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
	Filter   AccountingFilter
	Member   string // name of the filter's user; empty: none
	OwnOnly  bool   // only the reader's own shares are counted
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

// AccountingFilter tells which shares are counted; zero: all.
type AccountingFilter struct {
	UserID  int64
	Model   string
	Holder  models.HolderKind
	Billing models.Billing
}

// values are those of the filter in the address of a report, by name.
func (f AccountingFilter) values() map[string]string {
	values := map[string]string{"model": f.Model, "holder": string(f.Holder), "billing": string(f.Billing)}
	if f.UserID != 0 {
		values["user_id"] = number(f.UserID)
	}
	maps.DeleteFunc(values, func(_, value string) bool { return value == "" })
	return values
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
	// filter is the name of the filter to one of the group.
	filter string
}{{"project", models.Say("Project"), ""}, {"member", models.Say("Member"), "user_id"}, {"model", models.Say("GPU model"), "model"},
	{"holder", models.Say("Used by"), "holder"},
	{"billing", models.Say("Billing model"), "billing"}}

// accountingLabels are the inputs of a report that are called otherwise than elsewhere.
var accountingLabels = map[string]string{"group": "accounting_group"}

// groups are the groups that can be chosen on the page. By what all shares have in common, there is only one.
func (v AccountingView) groups(ctx context.Context) (list []Option) {
	common := v.Filter.values()
	for _, g := range accountingGroups {
		if g.name == v.Group || common[g.filter] == "" && (g.name != "project" || v.Project.ID == 0) {
			list = append(list, Option{g.name, TT(ctx, g.label)})
		}
	}
	return list
}

// AccountingChip is a part of the filter, and the address of the report without it.
type AccountingChip struct{ Label, Href string }

// chips are the parts of the filter.
func (v AccountingView) chips(ctx context.Context) (list []AccountingChip) {
	values := v.Filter.values()
	for _, g := range accountingGroups {
		value, ok := values[g.filter]
		if !ok {
			continue
		}
		if g.filter == "user_id" {
			value = cmp.Or(v.Member, value)
		}
		without := v.Filter.values()
		delete(without, g.filter)
		list = append(list, AccountingChip{T(ctx, "%s: %s", TT(ctx, g.label), nameOfGroup(ctx, g.name, value)), v.address(v.Group, without)})
	}
	return list
}

// address is that of the report by another group and of other shares, of the same span.
func (v AccountingView) address(group string, filter map[string]string) string {
	q := v.spanValues()
	q.Set("group", group)
	for name, value := range filter {
		q.Set(name, value)
	}
	return v.Path + "?" + q.Encode()
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
	for name, value := range v.Filter.values() {
		q.Set(name, value)
	}
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

// nameOfGroup is what one of a group is called.
func nameOfGroup(ctx context.Context, group, name string) string {
	switch {
	case group == "billing":
		return begun(ctx, models.Billing(name).Words())
	case group == "holder" && name == string(models.HolderWorkspace):
		return T(ctx, "Workspaces")
	case group == "holder" && name == string(models.HolderRun):
		return T(ctx, "Runs")
	case group == "holder" && name == string(models.HolderDeployment):
		return T(ctx, "Deployments")
	}
	return name
}

// link is the report of one of a group alone, by the first other group; empty if there is none.
func (v AccountingView) link(ctx context.Context, r AccountingRow) string {
	filter := v.Filter.values()
	if v.Group == "project" {
		v.Path = projectPath(r.Key) + "/accounting"
		return v.address("member", filter)
	}
	for _, g := range accountingGroups {
		if g.name != v.Group {
			continue
		}
		if filter[g.filter] = r.Name; g.filter == "user_id" {
			filter[g.filter] = number(r.Key)
		}
		for _, next := range v.groups(ctx) {
			if next.Value != v.Group {
				return v.address(next.Value, filter)
			}
		}
	}
	return ""
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
