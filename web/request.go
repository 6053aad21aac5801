package web

import (
	"cmp"
	"context"
	"strings"

	"weir/models"
)

// RequestPageView is one request.
//
// Fields of the decision: those of the kind, reason, confirm and decision.
type RequestPageView struct {
	models.RequestView
	Own         bool
	CanDecide   bool
	CanWithdraw bool
	Facts       *RequestFacts
	Form        Form // the decision
	Preview     *PreviewView
}

// RequestFacts are the facts for deciding a request.
type RequestFacts struct {
	Now       *models.Resources
	Quota     *models.Resources // of the project
	Left      models.Resources
	Members   int64 // with the role
	Capacity  []CapacityRow
	Used      *models.Usage
	UsedByOne *models.Usage
	Roles     []RoleChoice
	Beyond    []models.Text
}

func requestPath(n int64) string { return "/requests/" + number(n) }

// decisionLabels are those of a decision.
var decisionLabels = map[string]string{"reason": "decision_reason", "confirm": "confirm_beyond"}

// factRow is what a request changes of one resource, with the facts to decide it by.
type factRow struct {
	Label  models.Text
	Change string // such as "50 → 80"
	Facts  string
}

// factRows are the resources that a request changes.
func (v RequestPageView) factRows(ctx context.Context) (rows []factRow) {
	f := v.Facts
	for i, p := range f.Capacity {
		if !v.vector() || !v.concerns(i) {
			continue
		}
		row := factRow{Label: p.Label, Facts: v.factsOf(ctx, i, p)}
		if row.Change = amountChange(v.RequestView, v.Requested, i); row.Change == "" {
			continue
		}
		rows = append(rows, row)
	}
	return rows
}

// amountChange is what terms make of the i-th amount of a request, such as "50 → 80"; empty
// if they leave it unchanged.
func amountChange(r models.RequestView, terms models.Requested, i int) string {
	requested := terms.Amounts().Amounts()[i]
	change := models.Quantity(requested.Name, requested.Value)
	before := r.Before()
	if before == nil {
		return change
	}
	now := before.Amounts()[i].Value
	if now == requested.Value {
		return ""
	}
	return models.Quantity(requested.Name, now) + " → " + change
}

// endChange is what terms make of the end of a period or membership.
func endChange(ctx context.Context, r models.RequestView, terms models.Requested) string {
	after := endDate(ctx, terms.End())
	end, changes := r.EndsBefore()
	before := endDate(ctx, end)
	if !changes || before == after {
		return after
	}
	return before + " → " + after
}

// requestChanges are what a request changes, or as it was approved, in a list of requests.
func requestChanges(ctx context.Context, r models.RequestView) (list []string) {
	add := func(label, change string) { list = append(list, T(ctx, "%s: %s", label, change)) }
	if _, changes := r.EndsBefore(); changes {
		add(TT(ctx, fields["ends_at"].Label), endChange(ctx, r, r.Requested))
	}
	if amountsIn(r.Kind) == nil {
		return list
	}
	terms := r.Requested
	if r.Decided != nil {
		terms = *r.Decided
	}
	for i, a := range terms.Amounts().Amounts() {
		if change := amountChange(r, terms, i); change != "" && (a.Value > 0 || r.Before() != nil) {
			add(TT(ctx, a.Label), change)
		}
	}
	return list
}

// factsOf are the facts about the i-th resource in one line.
func (v RequestPageView) factsOf(ctx context.Context, i int, p CapacityRow) string {
	f := v.Facts
	var facts []string
	add := func(label, value string) { facts = append(facts, T(ctx, "%s: %s", label, value)) }
	if f.Quota != nil {
		add(T(ctx, "Unallocated quota"), models.Quantity(p.Name, f.Left.Amounts()[i].Value))
		add(T(ctx, "Project usage"), used(ctx, f.Used, i))
	}
	if f.UsedByOne != nil {
		add(T(ctx, "Requester usage"), used(ctx, f.UsedByOne, i))
	}
	add(T(ctx, "Capacity"), p.capacity(ctx))
	add(T(ctx, "Allocatable"), p.allocatable(ctx))
	add(T(ctx, "Allocated"), models.Quantity(p.Name, p.Value))
	return strings.Join(facts, " · ")
}

// used formats an average; storage is not measured.
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

// vector reports whether the request is about amounts.
func (v RequestPageView) vector() bool { return amountsIn(v.Kind) != nil }

// concerns reports whether the request is about the i-th resource: some of it is
// requested or was decided, or what there is of it would be taken away.
func (v RequestPageView) concerns(i int) bool {
	if v.Requested.Amounts().Amounts()[i].Value > 0 || v.Decided != nil && v.Decided.Amounts().Amounts()[i].Value > 0 {
		return true
	}
	if v.Kind != models.RequestQuota && v.Kind != models.RequestLimit {
		return false
	}
	return v.Facts == nil || v.Facts.Now == nil || v.Facts.Now.Amounts()[i].Value > 0
}

// requestFact is one requested value, and the decided one.
type requestFact struct{ Label, Requested, Decided string }

// facts are the requested values as text.
func (v RequestPageView) facts(ctx context.Context) (list []requestFact) {
	decided := v.Requested
	if v.Decided != nil {
		decided = *v.Decided
	}
	text := func(field, asked, decided string) {
		list = append(list, requestFact{fieldName(ctx, field), asked, decided})
	}
	switch a, d := v.Requested, decided; v.Kind {
	case models.RequestProject:
		text("name", a.Project.Name, d.Project.Name)
		text("ends_at", endDate(ctx, a.Project.EndsAt), endDate(ctx, d.Project.EndsAt))
	case models.RequestRole:
		text("name", a.Role.Name, d.Role.Name)
		text("permission", stateWord(ctx, a.Role.Permission), stateWord(ctx, d.Role.Permission))
		if a.Role.AssignToRequester {
			text("assign_to_requester", yesNo(ctx, a.Role.AssignToRequester), yesNo(ctx, d.Role.AssignToRequester))
		}
	case models.RequestLimit:
		text("role_id", v.RoleName, v.RoleName)
	case models.RequestPeriod:
		text("ends_at", endChange(ctx, v.RequestView, a), endChange(ctx, v.RequestView, d))
	case models.RequestDeadline:
		text("until", endChange(ctx, v.RequestView, a), endChange(ctx, v.RequestView, d))
	case models.RequestJoin:
		text("until", endDate(ctx, a.Join.Until), endDate(ctx, d.Join.Until))
	}
	if v.vector() {
		other := decided.Amounts().Amounts()
		for i, a := range v.Requested.Amounts().Amounts() {
			change := amountChange(v.RequestView, v.Requested, i)
			switch as := other[i].Value == a.Value; {
			case change == "" && as || !v.concerns(i):
			case as:
				text(a.Name, change, change)
			default:
				text(a.Name, cmp.Or(change, models.Quantity(a.Name, a.Value)), models.Quantity(a.Name, other[i].Value))
			}
		}
	}
	return list
}

// ConfirmWithdraw asks for confirmation before a request is withdrawn.
func ConfirmWithdraw(r models.RequestView) ConfirmView {
	return ConfirmView{Title: models.Say("Withdraw this request?"), Button: models.Say("Withdraw request"),
		Consequences: []models.Text{r.What(), models.Say("It can no longer be approved. You can submit another one.")},
		Action:       requestPath(r.ID) + "/withdraw", Back: requestPath(r.ID), Version: r.Version}
}
