package web

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/models"
)

// UsageRange is a span of time of usage, as chosen.
//
// Fields: from, until.
type UsageRange struct {
	Path        string // of the page
	From, Until time.Time
	Now         time.Time
	Form        Form
}

// UsageView is the use of a project over time, compared with its allocated limits.
type UsageView struct {
	UsageRange
	Project   models.Project
	Steps     []UsageStep
	Used      models.Usage     // by all, in the span
	Left      models.Usage     // by former members
	Allocated models.Resources // at present
	Roles     []RoleUse
	People    []PersonUse
	SeesAll   bool   // the use of every member, not only the reader's own
	Simulated bool   // some of the GPUs were simulated
	Next      string // address of the next page of people, or empty
}

// UsageStep is one of equally long steps.
type UsageStep struct {
	From      time.Time
	InUse     models.Resources // on average
	Allocated *models.Resources
	Quota     *models.Resources
}

// RoleUse is the usage of a role's members.
type RoleUse struct {
	Name      string
	Members   int64
	Limit     models.Resources // of each
	Allocated models.Resources // to all
	InUse     models.Resources // now
	Used      models.Usage
	OfTotal   *float64 // of the GPU cores that the project used
}

// PersonUse is the usage of a member.
type PersonUse struct {
	Name, Email, Role string
	Me                bool
	Limit             models.Resources
	InUse             models.Resources // now
	Used              models.Usage
	OfTotal           *float64 // of the GPU cores that the project used
}

// AllUsageView is the usage of all projects.
type AllUsageView struct {
	UsageRange
	Steps     []UsageStep
	Rows      []ProjectUse
	Used      models.Usage
	Simulated bool
	Capacity  models.Resources // of the pool at present; 0: not known
	Next      string           // address of the next page, or empty
}

// ProjectUse is the usage of a project.
type ProjectUse struct {
	ID      int64
	Name    string
	Quota   models.Resources
	Used    models.Usage
	OfQuota *float64 // of the GPU cores of the quota
	OfTotal *float64 // of the GPU cores that all projects used
}

// usageDays are the spans that can be chosen.
var usageDays = []int64{1, 7, 30, 90}

// days is the length of the span, rounded.
func (r UsageRange) days() int64 {
	return max(1, int64(r.Until.Sub(r.From).Round(24*time.Hour)/(24*time.Hour)))
}

// last is the address of the last days.
func (r UsageRange) last(days int64) string {
	return r.Path + "?" + url.Values{"from": {timestamp(r.Now.Add(-time.Duration(days) * 24 * time.Hour))}}.Encode()
}

// chosen reports whether the span is the last days.
func (r UsageRange) chosen(days int64) bool { return r.Form.Value("until") == "" && r.days() == days }

// spanValues are those of the span in the address.
func (r UsageRange) spanValues() url.Values {
	q := url.Values{}
	for _, name := range []string{"from", "until"} {
		if text := r.Form.Value(name); text != "" && !r.Form.Failed() {
			q.Set(name, text)
		}
	}
	return q
}

// query is the span as in the address.
func (r UsageRange) query() string {
	if q := r.spanValues(); len(q) > 0 {
		return "?" + q.Encode()
	}
	return ""
}

// dates is the span as days, for the form, or what was refused.
func (r UsageRange) dates() Form {
	if r.Form.Failed() {
		return r.Form
	}
	last := r.Until.Add(-time.Nanosecond)
	return Form{Values: map[string]string{"from": r.From.UTC().Format(time.DateOnly), "until": last.UTC().Format(time.DateOnly)}}
}

// fractionWord formats a fraction as a percentage, or a dash.
func fractionWord(fraction *float64) string {
	if fraction == nil {
		return "–"
	}
	return strconv.FormatFloat(*fraction*100, 'f', 1, 64) + "%"
}

// daysWord formats a time span.
func daysWord(ctx context.Context, days int64) string {
	if days == 1 {
		return T(ctx, "24 hours")
	}
	return T(ctx, "%d days", days)
}

// summary is the use in one sentence, beside what was allocated then.
func (v UsageView) summary(ctx context.Context) string {
	used, allocated := v.Used.Average.GPUCores, v.averageAllocated()
	if allocated < 0 {
		return T(ctx, "On average, %d GPU cores were in use.", used)
	}
	return T(ctx, "On average, %d of %d GPU cores allocated to members were in use: %s.", used, allocated, percentWord(used, allocated))
}

// averageAllocated is the average of the GPU cores that were allocated to members; -1 if it is not recorded or unlimited.
func (v UsageView) averageAllocated() int64 {
	var sum, recorded int64
	for _, s := range v.Steps {
		if s.Allocated == nil {
			continue
		}
		if models.IsUnlimited(s.Allocated.GPUCores) {
			return -1
		}
		sum, recorded = sum+s.Allocated.GPUCores, recorded+1
	}
	if recorded == 0 {
		return -1
	}
	return sum / recorded
}

// usedColumns are the columns of what was used in the span.
func usedColumns(ctx context.Context) tableColumns {
	return slices.Concat(num(T(ctx, "Average GPU cores")), num(T(ctx, "GPU core hours")), num(T(ctx, "CPU hours")))
}

// usageCharts are the resources that have a chart, by their place in
// [models.Resources.Amounts].
var usageCharts = []int{0, 1, 2, 3}

func (v UsageView) charts(ctx context.Context) (list []Chart) {
	for _, i := range usageCharts {
		list = append(list, v.chart(ctx, i))
	}
	return list
}

func (v AllUsageView) charts(ctx context.Context) (list []Chart) {
	for _, i := range usageCharts {
		c, most := v.resourceChart(ctx, v.Steps, i, v.Simulated)
		c.Summary = T(ctx, "%s: maximum %s.", c.Title, c.Say(most))
		if capacity := v.Capacity.Amounts()[i].Value; capacity > 0 {
			line := Line{Class: "capacity", Label: T(ctx, "Capacity at present"), Values: slices.Repeat([]int64{capacity}, len(v.Steps))}
			c.Lines, c.Top = append([]Line{line}, c.Lines...), max(c.Top, capacity)
		}
		list = append(list, c)
	}
	return list
}

// resourceChart is a chart of one resource without its summary, and the most that was in use.
func (r UsageRange) resourceChart(ctx context.Context, steps []UsageStep, i int, simulated bool) (c Chart, most int64) {
	amount := (models.Resources{}).Amounts()[i]
	quota := Line{Class: "capacity", Label: T(ctx, "Quota")}
	allocated := Line{Class: "allocated", Label: T(ctx, "Allocated")}
	inUse := Line{Class: "mean", Label: T(ctx, "Average in use")}
	for _, s := range steps {
		inUse.Values = append(inUse.Values, s.InUse.Amounts()[i].Value)
		allocated.Values = append(allocated.Values, valueOr(s.Allocated, i))
		quota.Values = append(quota.Values, valueOr(s.Quota, i))
	}
	least := int64(1)
	if amount.Name == "cpu_milli" {
		least = 1000
	}
	lines := []Line{inUse}
	if len(steps) > 0 && steps[len(steps)-1].Quota != nil {
		lines = []Line{quota, allocated, inUse}
	}
	return Chart{ID: "chart-" + amount.Name, Title: TT(ctx, amount.Label), Top: max(least, largest(lines)),
			Say: func(n int64) string { return models.Quantity(amount.Name, n) }, From: r.From, To: r.Until, Lines: lines,
			Simulated: simulated && strings.HasPrefix(amount.Name, "gpu_")},
		max(0, largest([]Line{inUse}))
}

func (v UsageView) chart(ctx context.Context, i int) Chart {
	c, most := v.resourceChart(ctx, v.Steps, i, v.Simulated)
	c.Summary = T(ctx, "%s over %s: highest average in use per interval %s, quota %s.", c.Title, daysWord(ctx, v.days()),
		c.Say(most), c.Say(v.Project.Quota.Amounts()[i].Value))
	return c
}

// valueOr is one amount of a vector; -1 where there is none, or it is unlimited.
func valueOr(r *models.Resources, i int) int64 {
	if r == nil || models.IsUnlimited(r.Amounts()[i].Value) {
		return -1
	}
	return r.Amounts()[i].Value
}

// ofResource names a column of one resource.
func ofResource(ctx context.Context, i int, column string) string {
	return T(ctx, "%s: %s", (models.Resources{}).Amounts()[i].Label, column)
}

// amountOr formats one amount of a vector, or a dash.
func amountOr(r *models.Resources, i int) string {
	if r == nil {
		return "–"
	}
	a := r.Amounts()[i]
	return models.Quantity(a.Name, a.Value)
}
