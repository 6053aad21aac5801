package projects

import (
	"context"
	"time"

	"weir/models"
	"weir/policies"
)

// MemberColumns are those of a table of members. Name and department are the
// account's: an import compares them, and never changes them.
var MemberColumns = []string{"email", "name", "department", "role", "joined", "until"}

// MemberColumnsNeeded are those that a table to import must have.
var MemberColumnsNeeded = []string{"email", "role"}

// memberFields are the columns of MemberInput's fields.
var memberFields = map[string]string{"role_id": "role", "joined_at": "joined"}

// ImportMembers adds and changes members as a table says, in one transaction
// and under the same rules as one by one; nobody is removed. An account must
// be there for each row. A dry run tells every row's outcome and changes
// nothing.
func (s *Service) ImportMembers(ctx context.Context, actor policies.Actor, project int64, in models.Import) (models.ImportReport, error) {
	var added []int64
	report, err := s.access.Import(ctx, s.store, actor, project, policies.MemberWrite, in, func(q *models.Queries) (policies.ImportRow, error) {
		added = nil
		p, err := q.LockProject(actor.Scope(), project)
		if err != nil {
			return nil, err
		}
		i := memberImport{Editor: s.Within(q, actor), project: p, roles: map[string]int64{}, names: map[int64]string{},
			departments: map[int64]string{}, added: &added, seesAll: s.access.May(actor, policies.Platform, policies.UserRead)}
		roles, err := q.Roles(models.Everything, project)
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

// memberImport is an import within its transaction.
type memberImport struct {
	Editor
	project     models.Project
	roles       map[string]int64 // by name
	names       map[int64]string // of roles
	departments map[int64]string // names that were looked up
	added       *[]int64         // members whose directory is to be made
	seesAll     bool             // the actor may see every account
}

func (i memberImport) importRow(r models.Record) (row models.ImportedRow, err error) {
	row = models.ImportedRow{Line: r.Line, Email: r.Cells["email"], Outcome: models.RowUnchanged}
	u, err := i.q.UserByEmail(row.Email)
	if models.KindOf(err) == models.KindNotFound {
		row.Refuse(models.Invalid("email", "has no account; an administrator can create one").Fields...)
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

// readRow is what a row says of a member, who keeps what it does not say.
func (i memberImport) readRow(r models.Record, m models.Member, present bool) (in MemberInput, p models.Problems) {
	in = MemberInput{Email: r.Cells["email"]}
	role, known := i.roles[r.Cells["role"]]
	if in.RoleID = role; !known {
		p.Add("role", "is not a role of this project")
	}
	in.JoinedAt = dateCell(r, "joined", &p)
	in.Until = dateCell(r, "until", &p)
	if _, said := r.Cells["until"]; present && (!said || in.Until != nil && m.Until != nil && models.Day(*m.Until).Equal(*in.Until)) {
		in.Until = m.Until // the day is as it was: so is the time of day
	}
	return in, p
}

// dateCell reads a cell with a date; nil when it is empty.
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

// matchAccount refuses a row that names the account otherwise than it is called. What
// the account says instead is only for who may see it.
func (i memberImport) matchAccount(r models.Record, u models.User, seen bool, p *models.Problems) error {
	if said := r.Cells["name"]; said != "" && said != u.Name {
		refuseDifference(p, "name", u.Name, seen)
	}
	said := r.Cells["department"]
	if said == "" {
		return nil
	}
	name := ""
	if u.DepartmentID != nil {
		if err := i.department(*u.DepartmentID); err != nil {
			return err
		}
		name = i.departments[*u.DepartmentID]
	}
	if said != name {
		refuseDifference(p, "department", name, seen)
	}
	return nil
}

func refuseDifference(p *models.Problems, column, is string, seen bool) {
	switch {
	case !seen:
		p.Add(column, "does not match the account; leave it empty")
	case is == "":
		p.Add(column, "is not set in the account; leave it empty")
	default:
		p.Add(column, "is %s in the account; enter that value or leave it empty", is)
	}
}

func (i memberImport) department(id int64) error {
	if _, known := i.departments[id]; known {
		return nil
	}
	d, err := i.q.Department(id)
	i.departments[id] = d.Name
	return err
}

func (i memberImport) changeMember(row *models.ImportedRow, m models.Member, in MemberInput) error {
	row.Change("role", i.names[m.RoleID], i.names[in.RoleID])
	if in.JoinedAt != nil {
		row.Change("joined", dateOf(&m.JoinedAt), dateOf(in.JoinedAt))
	}
	row.Change("until", dateOf(m.Until), dateOf(in.Until))
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
	row.Change("until", "", dateOf(m.Until))
	*i.added = append(*i.added, m.ID)
	return nil
}

// dateOf is a day as tables have it; empty for none.
func dateOf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

// MemberCells are a member's cells, in the order of MemberColumns.
func MemberCells(m MemberView) []string {
	return []string{m.UserEmail, m.UserName, m.Department, m.RoleName, dateOf(&m.JoinedAt), dateOf(m.Until)}
}
