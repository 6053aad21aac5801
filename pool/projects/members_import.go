package projects

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// MemberColumns are the columns of a table of members. An import compares the name
// and department of the account, and does not change them.
var MemberColumns = []string{"email", "name", "department", "role", "joined", "until"}

// MemberColumnsNeeded are the required columns of an import.
var MemberColumnsNeeded = []string{"email", "role"}

// memberFields maps fields of MemberInput to columns.
var memberFields = map[string]string{"role_id": "role", "joined_at": "joined"}

// ImportMembers adds and changes members from a table, in one transaction and under
// the rules for single members. No member is removed. Each row needs an account. A
// dry run returns every row's outcome and changes nothing.
func (s *Service) ImportMembers(ctx context.Context, actor policies.Actor, project int64, in models.Import) (models.ImportReport, error) {
	var added []int64
	report, err := s.access.Import(ctx, s.store, actor, project, policies.MemberWrite, in, func(q *store.Queries) (policies.ImportRow, error) {
		added = nil
		p, err := q.LockProject(actor.Scope(), project)
		if err != nil {
			return nil, err
		}
		i := memberImport{Editor: s.Within(q, actor), project: p, roles: map[string]int64{}, names: map[int64]string{},
			departments: policies.DepartmentNames{}, added: &added, seesAll: s.access.May(actor, policies.Platform, policies.UserRead)}
		roles, err := q.Roles(store.AllProjects, project)
		for _, r := range roles {
			i.roles[r.Name], i.names[r.ID] = r.ID, r.Name
		}
		return i.importRow, err
	})
	if err == nil && report.Done {
		for _, m := range added {
			s.MakeMemberDirectory(ctx, project, m)
		}
	}
	return report, err
}

// memberImport is the state of an import within its transaction.
type memberImport struct {
	Editor
	project     models.Project
	roles       map[string]int64 // by name
	names       map[int64]string // of roles
	departments policies.DepartmentNames
	added       *[]int64 // new members, who need a directory
	seesAll     bool     // the actor may see every account
}

func (i memberImport) importRow(r models.Record) (row models.ImportedRow, err error) {
	row = models.ImportedRow{Line: r.Line, Email: r.Cells["email"], Outcome: models.RowUnchanged}
	u, err := i.q.UserByEmail(row.Email)
	if models.KindOf(err) == models.KindNotFound {
		row.Refuse(models.Invalid("email", "no account has this email address; invite the person first").Fields...)
		return row, nil
	}
	if err != nil {
		return row, err
	}
	m, err := i.q.Membership(i.project.ID, u.ID)
	if err != nil && models.KindOf(err) != models.KindNotFound {
		return row, err
	}
	present := err == nil && m.RemovedAt == nil
	in, problems := i.readRow(r, m, present)
	if err := i.matchAccount(r, u, present || i.seesAll, &problems); err != nil {
		return row, err
	}
	if len(problems) > 0 {
		row.Refuse(problems...)
		return row, nil
	}
	if present {
		return row, i.changeMember(&row, m, in)
	}
	return row, i.newMember(&row, in)
}

// readRow reads a row. Absent columns change nothing.
func (i memberImport) readRow(r models.Record, m models.Member, present bool) (in MemberInput, p models.Problems) {
	in = MemberInput{Email: r.Cells["email"]}
	role, known := i.roles[r.Cells["role"]]
	if in.RoleID = role; !known {
		p.Add("role", "is not a role of this project")
	}
	in.JoinedAt = dateCell(r, "joined", &p)
	if in.Until = dateCell(r, "until", &p); in.Until != nil {
		*in.Until = models.AfterDay(*in.Until)
	}
	if _, given := r.Cells["until"]; present && (!given || in.Until != nil && lastDayOf(m.Until) == lastDayOf(in.Until)) {
		in.Until = m.Until // keep the time of day
	}
	return in, p
}

// dateCell reads a date; nil for an empty cell.
func dateCell(r models.Record, column string, p *models.Problems) *time.Time {
	text := r.Cells[column]
	if text == "" {
		return nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		p.Add(column, "must be a date such as 2027-01-31")
		return nil
	}
	return &t
}

// matchAccount refuses a row with another name or department than the account's. The
// error contains them only if the actor may see the account.
func (i memberImport) matchAccount(r models.Record, u models.User, visible bool, p *models.Problems) error {
	checkSame(p, r, "name", u.Name, visible)
	if r.Cells["department"] == "" {
		return nil
	}
	department, err := i.departments.Of(i.q, u.DepartmentID)
	checkSame(p, r, "department", department, visible)
	return err
}

func checkSame(p *models.Problems, r models.Record, column, is string, visible bool) {
	switch given := r.Cells[column]; {
	case given == "" || given == is:
	case !visible:
		p.Add(column, "does not match the account; leave it empty")
	case is == "":
		p.Add(column, "is not set in the account; leave it empty")
	default:
		p.Add(column, "is %s in the account; enter that value or leave it empty", is)
	}
}

func (i memberImport) changeMember(row *models.ImportedRow, m models.Member, in MemberInput) error {
	row.Change("role", i.names[m.RoleID], i.names[in.RoleID])
	if in.JoinedAt != nil {
		row.Change("joined", dateOf(&m.JoinedAt), dateOf(in.JoinedAt))
	}
	row.Change("until", lastDayOf(m.Until), lastDayOf(in.Until))
	if len(row.Changes) == 0 {
		return nil
	}
	row.Outcome = models.RowChanged
	_, err := i.UpdateMember(i.project, m, in)
	return policies.RefuseImportedRow(row, err, memberFields)
}

func (i memberImport) newMember(row *models.ImportedRow, in MemberInput) error {
	m, err := i.AddMember(i.project, in)
	if err != nil {
		return policies.RefuseImportedRow(row, err, memberFields)
	}
	row.Outcome = models.RowAdded
	row.Change("role", "", i.names[m.RoleID])
	row.Change("joined", "", dateOf(&m.JoinedAt))
	row.Change("until", "", lastDayOf(m.Until))
	*i.added = append(*i.added, m.ID)
	return nil
}

// dateOf formats a date; empty for nil.
func dateOf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

// lastDayOf formats the last day before an exclusive end; empty for nil.
func lastDayOf(end *time.Time) string {
	if end == nil {
		return ""
	}
	return dateOf(new(models.LastDay(*end)))
}

// MemberCells formats a member in the order of MemberColumns; nil for a service account,
// which is not imported.
func MemberCells(m MemberView) []string {
	if models.IsServiceAccount(m.UserEmail) {
		return nil
	}
	return []string{m.UserEmail, m.UserName, m.Department, m.RoleName, dateOf(&m.JoinedAt), lastDayOf(m.Until)}
}
