package projects

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// AccountingQuery selects a span of time, and by what shares are summed.
type AccountingQuery struct {
	UsageQuery
	Group string `query:"group" enum:"project,member,model,holder,billing" doc:"default project, or member in one project"`
	AccountingFilter
}

// AccountingFilter narrows a report to some shares, so that those of one group can be summed by another one.
type AccountingFilter struct {
	UserID  int64             `query:"user_id" minimum:"1" doc:"user ID of a member"`
	Model   string            `query:"model" maxLength:"200" doc:"GPU model"`
	Holder  models.HolderKind `query:"holder" enum:"workspace,run,deployment" doc:"what used the shares"`
	Billing models.Billing    `query:"billing" enum:"on_demand,reserved,preemptible" doc:"billing model"`
}

// check checks the filter alone.
func (f AccountingFilter) check() error {
	var p models.Problems
	if f.UserID < 0 {
		p.Add("user_id", "must be at least %d", 1)
	}
	checkOneOf("holder", f.Holder, models.HolderKinds, &p)
	checkOneOf("billing", f.Billing, models.Billings, &p)
	return p.Err()
}

// checkOneOf refuses a value that is given and not among those of its kind.
func checkOneOf[T ~string](field string, value T, all []T, p *models.Problems) {
	if value != "" && !slices.Contains(all, value) {
		p.Add(field, "must be one of %s", strings.Join(models.Map(all, func(one T) string { return string(one) }), ", "))
	}
}

// Groups of [AccountingQuery].
const (
	GroupProject = "project"
	GroupMember  = "member"
	GroupModel   = "model"
	GroupHolder  = "holder"
	GroupBilling = "billing"
)

// Groups are all groups of [AccountingQuery].
var Groups = []string{GroupProject, GroupMember, GroupModel, GroupHolder, GroupBilling}

var shareGroups = map[string]store.ShareGroup{GroupProject: store.SharesByProject, GroupMember: store.SharesByUser,
	GroupModel: store.SharesByModel, GroupHolder: store.SharesByHolder, GroupBilling: store.SharesByBilling}

// Accounting is what shares of GPUs took over a span of time, and what it cost, with one
// page of groups.
type Accounting struct {
	Project     models.Project // zero: all
	From, Until time.Time
	Group       string
	Filter      AccountingFilter
	Member      string // name of the filter's user; empty: none
	OwnOnly     bool   // only the actor's own shares are counted
	Total       AccountingRow
	Rows        []AccountingRow
	Next        int64 // Key of the last row if there are more; otherwise 0
	Steps       []AccountingStep
	Currency    string // of the costs; empty: no prices are set
}

// AccountingStep is one of equally long steps of a span.
type AccountingStep struct {
	From   time.Time
	CoreMS int64
}

// AccountingRow is one group. The sums of all groups are those of the total; costs are
// rounded once in each row, after they have been added up.
type AccountingRow struct {
	Key        int64  // ID of the project or user; else the place of the row from 1
	Name       string // of the project, user or model; else the holder's kind or the billing model
	CoreMS     int64  // allocated GPU cores × milliseconds
	ReservedMS int64  // the part that was reserved
	// What was reserved besides, and nothing used; by holder there is none, only in the total.
	ReservedUnusedMS int64
	UnpricedMS       int64 // the part for which no price was in force
	Cost             int64 // of the priced part, in millionths of the currency
	Simulated        bool  // some of the GPUs are simulated
	// What was measured in hours in which a share had its GPU alone; 0: nothing was.
	MeasuredMS, UsedMS int64 // GPU cores × milliseconds, as allocated and as used

	cost models.Cost
}

func (r *AccountingRow) add(s store.ShareSum, micros map[int64]int64) {
	r.CoreMS, r.Simulated = r.CoreMS+s.CoreMS, r.Simulated || s.Simulated
	if s.Billing != models.BillingOnDemand {
		r.ReservedMS += s.CoreMS
	}
	if s.Price == 0 {
		r.UnpricedMS += s.CoreMS
		return
	}
	r.cost.Add(s.CoreMS, micros[s.Price])
	r.Cost = r.cost.Micros()
}

// Accounting returns what the shares of a project took, or with 0 those of all projects.
// All is for administrators and auditors; of a project, those who can read its usage see
// all members, and others only their own shares.
func (s *Service) Accounting(ctx context.Context, actor policies.Actor, project int64, in AccountingQuery,
	page store.Page) (a Accounting, err error) {
	if project == 0 {
		err = s.access.Check(actor, policies.Platform, policies.CapacityRead)
	} else {
		err = s.access.Check(actor, project, policies.ProjectRead)
	}
	if err != nil {
		return a, err
	}
	if err := in.check(); err != nil {
		return a, err
	}
	span := store.ShareSpan{Project: project, User: in.UserID, Model: in.Model, Holder: in.Holder, Billing: in.Billing}
	a.OwnOnly = project != 0 && !s.CanReadUsage(actor, project)
	if a.OwnOnly && in.UserID != 0 && in.UserID != actor.User.ID {
		return a, s.access.Check(actor, project, policies.MemberWrite)
	}
	if a.Filter = in.AccountingFilter; a.OwnOnly {
		span.User = actor.User.ID
	}
	if a.Group, err = in.group(project); err != nil {
		return a, err
	}
	if a.From, a.Until, err = in.span(s.store.Now()); err != nil {
		return a, err
	}
	span.From, span.Until = a.From, a.Until
	// One state: the sums of the groups are the total, at the same prices.
	err = s.store.Snapshot(ctx, func(q *store.Queries) (err error) {
		if project != 0 {
			if a.Project, err = q.Project(actor.Scope(), project); err != nil {
				return err
			}
		}
		if err := a.sum(q, span, page); err != nil || in.UserID == 0 || a.Total.CoreMS+a.Total.ReservedUnusedMS == 0 {
			return err // who has used nothing there is not named
		}
		names, err := q.KeyNames(store.SharesByUser, []int64{in.UserID})
		a.Member = names[in.UserID]
		return err
	})
	return a, err
}

// group is the chosen group, or the usual one.
func (in AccountingQuery) group(project int64) (string, error) {
	switch {
	case in.Group == "" && project == 0:
		return GroupProject, nil
	case in.Group == "":
		return GroupMember, nil
	}
	var p models.Problems
	checkOneOf("group", in.Group, Groups, &p)
	return in.Group, p.Err()
}

func (a *Accounting) sum(q *store.Queries, span store.ShareSpan, page store.Page) error {
	prices, err := q.Prices()
	if err != nil {
		return err
	}
	micros := make(map[int64]int64, len(prices))
	for _, p := range prices {
		micros[p.ID], a.Currency = p.Micros, p.Currency
	}
	total, err := accountingRows(q, span, store.SharesTogether, prices, micros)
	if err != nil {
		return err
	}
	if len(total) > 0 {
		a.Total = total[0]
	}
	step, n := stepsOf(a.Until.Sub(a.From))
	steps, err := q.ShareSteps(span, step, n)
	for i, ms := range steps {
		a.Steps = append(a.Steps, AccountingStep{a.From.Add(time.Duration(i) * step), ms})
	}
	if err != nil {
		return err
	}
	by := shareGroups[a.Group]
	if by.Keyed() {
		var more bool
		if span.Among, more, err = q.ShareKeys(span, by, page); err != nil || len(span.Among) == 0 {
			return err
		}
		if more {
			a.Next = span.Among[len(span.Among)-1]
		}
	}
	if a.Rows, err = accountingRows(q, span, by, prices, micros); err != nil {
		return err
	}
	return a.complete(q, by, page)
}

// complete names the rows that are by ID, and pages the others.
func (a *Accounting) complete(q *store.Queries, by store.ShareGroup, page store.Page) error {
	if !by.Keyed() {
		for i := range a.Rows {
			a.Rows[i].Key = int64(i + 1)
		}
		from := min(int(page.After), len(a.Rows))
		a.Rows = a.Rows[from:]
		if n := page.Limit; n > 0 && n < len(a.Rows) {
			a.Rows, a.Next = a.Rows[:n], a.Rows[n-1].Key
		}
		return nil
	}
	ids := models.Map(a.Rows, func(r AccountingRow) int64 { return r.Key })
	names, err := q.KeyNames(by, ids)
	for i := range a.Rows {
		a.Rows[i].Name = names[ids[i]]
	}
	return err
}

// accountingRows are the groups of a span, in the order of their keys and names.
func accountingRows(q *store.Queries, span store.ShareSpan, by store.ShareGroup, prices []models.GPUPrice,
	micros map[int64]int64) ([]AccountingRow, error) {
	sums, err := q.ShareSums(span, by, prices)
	if err != nil {
		return nil, err
	}
	measured, err := q.MeasuredUses(span, by)
	if err != nil {
		return nil, err
	}
	unused, err := q.ReservedUnused(span, by)
	if err != nil {
		return nil, err
	}
	type group struct {
		key  int64
		name string
	}
	uses := make(map[group]store.MeasuredUse, len(measured))
	for _, m := range measured {
		uses[group{m.Key, m.Name}] = m
	}
	var rows []AccountingRow
	for _, s := range sums {
		if n := len(rows); n == 0 || rows[n-1].Key != s.Key || rows[n-1].Name != s.Name {
			rows = append(rows, AccountingRow{Key: s.Key, Name: s.Name})
		}
		rows[len(rows)-1].add(s, micros)
	}
	for i, r := range rows {
		use := uses[group{r.Key, r.Name}]
		rows[i].MeasuredMS, rows[i].UsedMS = use.AllocatedMS, use.UsedMS
	}
	return withUnused(rows, unused), nil
}

// withUnused adds what was reserved and not used to rows in the order of their keys and names; of a group that used
// nothing it is a row of its own.
func withUnused(rows []AccountingRow, unused []store.ReservedUnused) []AccountingRow {
	for _, u := range unused {
		i, found := slices.BinarySearchFunc(rows, u, func(r AccountingRow, u store.ReservedUnused) int {
			return cmp.Or(cmp.Compare(r.Key, u.Key), cmp.Compare(r.Name, u.Name))
		})
		if !found {
			rows = slices.Insert(rows, i, AccountingRow{Key: u.Key, Name: u.Name})
		}
		rows[i].ReservedUnusedMS, rows[i].Simulated = u.CoreMS, rows[i].Simulated || u.Simulated
	}
	return rows
}
