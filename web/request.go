package web

import (
	"context"

	"weir/models"
)

// RequestsView lists requests.
type RequestsView struct {
	Box     string // inbox, settled or mine
	Rows    []models.RequestView
	Next    string // address of the next page, empty on the last
	Decides bool   // there are requests that the reader may decide
	Waiting int    // for the reader
}

// AskView is a form for a new request; without a Kind it offers the kinds,
// without a Project those that it could be about.
//
// Fields: reason, and those of the kind behind its name: project.*, quota.*,
// role.*, peak.*, period.*, deadline.*, join.*.
type AskView struct {
	Form      Form
	Kind      string
	ProjectID int64
	Project   string
	Projects  []Option
	Roles     []RoleChoice
	Now       *models.Resources // the quota or peak as it is
	Remaining *models.Resources // of the project's quota
	Ends      string            // the end as it is, for people
	Preview   *PreviewView
}

// RequestPageView is one request.
//
// Fields of the decision: those of the kind, reason, confirm and verdict.
type RequestPageView struct {
	models.RequestView
	Own         bool
	MayDecide   bool
	MayWithdraw bool
	Facts       *RequestFacts
	Form        Form // the decision
	Preview     *PreviewView
}

// RequestFacts are what who decides should know.
type RequestFacts struct {
	Now       *models.Resources
	Quota     *models.Resources // of the project
	Left      models.Resources
	Members   int64 // who have the role
	Ends      string
	Promises  []PromiseRow
	Used      *models.Usage
	UsedByOne *models.Usage
	Roles     []RoleChoice
	Beyond    []models.Text
}

// PromiseRow is what was promised of one resource.
type PromiseRow struct {
	models.Amount
	Known     bool
	Capacity  int64
	Simulated int64 // of the capacity
	Ratio     int64
	Limit     int64
	Excess    int64 // beyond the limit
	Missing   int64 // beyond the capacity
}

// PromisesView compares what was promised with what there is.
//
// Fields: ratio.* in percent, stated.*.
type PromisesView struct {
	Form     Form
	Rows     []PromiseRow
	Projects []PromisedTo
	Next     string
}

// PromisedTo is a project that was promised something.
type PromisedTo struct {
	ID       int64
	Name     string
	Quota    models.Resources
	Promised models.Resources // to its members
	Held     models.Resources
}

// kindWords name what can be asked for.
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

func requestPath(n int64) string { return "/requests/" + id(n) }

func askPath(kind string, project int64) string {
	if project == 0 {
		return "/requests/new?kind=" + kind
	}
	return "/requests/new?kind=" + kind + "&project_id=" + id(project)
}

// askLabels are the inputs of requests that are called otherwise elsewhere.
var askLabels = map[string]string{"join.name": "join_name", "reason": "request_reason", "role.mine": "role_mine"}

// decisionLabels are those of a decision.
var decisionLabels = map[string]string{"reason": "decision_reason", "confirm": "confirm_beyond"}

// amountsIn are the inputs of the vector that a kind asks for.
func amountsIn(kind string) []string {
	switch kind {
	case models.AskForProject, models.AskForQuota:
		return resourceFields(kind + ".quota")
	case models.AskForRole, models.AskForPeak:
		return resourceFields(kind + ".peak")
	}
	return nil
}

// factLine is what is known of one resource beside a request.
type factLine struct {
	Name    string
	Label   models.Text
	Now     string
	Asked   int64
	Decided int64
	Left    int64
	Used    string
	UsedOne string
	Pool    PromiseRow
}

// lines are the rows of the table beside a request.
func (v RequestPageView) lines(ctx context.Context) []factLine {
	f := v.Facts
	lines := make([]factLine, len(f.Promises))
	asked, left := v.Asked.Amounts().Amounts(), f.Left.Amounts()
	decided := asked
	if v.Decided != nil {
		decided = v.Decided.Amounts().Amounts()
	}
	for i, p := range f.Promises {
		l := factLine{Name: p.Name, Label: p.Label, Asked: asked[i].Value, Decided: decided[i].Value, Left: left[i].Value, Pool: p}
		l.Used, l.UsedOne = used(ctx, f.Used, i), used(ctx, f.UsedByOne, i)
		if f.Now != nil {
			l.Now = models.Quantity(p.Name, f.Now.Amounts()[i].Value)
		}
		lines[i] = l
	}
	return lines
}

// used words an average; storage is not measured.
func used(ctx context.Context, u *models.Usage, i int) string {
	if u == nil {
		return ""
	}
	a := u.Average.Amounts()[i]
	if a.Name == "storage_mib" {
		return T(ctx, "not measured")
	}
	return models.Quantity(a.Name, a.Value)
}

// vector tells whether the request is about amounts.
func (v RequestPageView) vector() bool { return amountsIn(v.Kind) != nil }

// capacity words how much there is of a resource.
func (p PromiseRow) capacity(ctx context.Context) string {
	if !p.Known {
		return T(ctx, "not known")
	}
	all := models.Quantity(p.Name, p.Capacity)
	switch p.Simulated {
	case 0:
		return all
	case p.Capacity:
		return T(ctx, "%s (simulated)", all)
	}
	return T(ctx, "%s (%s of it simulated)", all, models.Quantity(p.Name, p.Simulated))
}

// limit words how much of a resource may be promised.
func (p PromiseRow) limit(ctx context.Context) string {
	if !p.Known {
		return T(ctx, "not checked")
	}
	return models.Quantity(p.Name, p.Limit)
}

// excessive words how much more was promised than there is.
func excessive(r PromiseRow, n int64) string {
	if n == 0 {
		return "–"
	}
	return models.Quantity(r.Name, n)
}

// missing tells of which resources more was promised than there is.
func (v PromisesView) missing() (rows []PromiseRow) {
	for _, r := range v.Rows {
		if r.Missing > 0 {
			rows = append(rows, r)
		}
	}
	return rows
}

// portion is which part of what was promised a project was promised.
func portion(r PromiseRow, to PromisedTo) int64 {
	for _, a := range to.Quota.Amounts() {
		if a.Name == r.Name && r.Value > 0 {
			return a.Value * 100 / r.Value
		}
	}
	return 0
}
