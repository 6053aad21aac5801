package policies

import (
	"context"
	"errors"
	"slices"

	"weir/models"
	"weir/models/store"
)

// PeopleColumns are the columns of a table of accounts.
var PeopleColumns = []string{"email", "name", "department", "admin", "auditor"}

// PeopleColumnsNeeded are the required columns of an import.
var PeopleColumnsNeeded = []string{"email", "name"}

// peopleFields maps fields of an account to columns.
var peopleFields = map[string]string{"department_id": "department"}

// CheckImport returns an error unless the actor may import accounts.
func (a *Accounts) CheckImport(actor Actor) error {
	return a.access.Check(actor, Platform, UserWrite)
}

// ImportPeople adds and changes accounts from a table, in one transaction. No
// account is removed or disabled. A new account has no password: it cannot be
// used until its user sets one with a link, or signs in with an identity
// provider that may link accounts. A dry run returns every row's outcome and
// changes nothing.
func (a *Accounts) ImportPeople(ctx context.Context, actor Actor, in models.Import) (models.ImportReport, error) {
	return a.access.Import(ctx, a.store, actor, Platform, UserWrite, in, func(q *store.Queries) (ImportRow, error) {
		i := peopleImport{accounts: a, q: q, actor: actor, departments: map[string]*int64{"": nil}, names: DepartmentNames{}}
		if err := q.LockUsers(); err != nil {
			return nil, err
		}
		return i.importRow, i.loadDepartments(in.Records)
	})
}

// peopleImport is the state of an import within its transaction.
type peopleImport struct {
	accounts    *Accounts
	q           *store.Queries
	actor       Actor
	departments map[string]*int64 // by name, those in the table
	names       DepartmentNames
}

// loadDepartments finds the table's departments, in batches that both databases
// accept.
func (i peopleImport) loadDepartments(records []models.Record) error {
	wanted := models.Map(records, func(r models.Record) string { return r.Cells["department"] })
	for part := range slices.Chunk(wanted, 500) {
		list, err := i.q.DepartmentsByNames(part)
		if err != nil {
			return err
		}
		for _, d := range list {
			i.departments[d.Name], i.names[d.ID] = &d.ID, d.Name
		}
	}
	return nil
}

func (i peopleImport) importRow(r models.Record) (row models.ImportedRow, err error) {
	row = models.ImportedRow{Line: r.Line, Email: r.Cells["email"], Outcome: models.RowUnchanged}
	u, err := i.q.UserByEmail(row.Email)
	if err != nil && models.KindOf(err) != models.KindNotFound {
		return row, err
	}
	known := err == nil
	in, problems := i.parse(r, u)
	if !known && in.Admin {
		problems.Add("admin", "must be no for a new account: it has no password yet")
	}
	if len(problems) > 0 {
		row.Refuse(problems...)
		return row, nil
	}
	if known {
		return row, i.update(&row, u, in)
	}
	return row, i.add(&row, in)
}

// parse applies a row to an account. Absent columns change nothing.
func (i peopleImport) parse(r models.Record, u models.User) (in UserChange, p models.Problems) {
	in = UserChange{Admin: u.Admin, Auditor: u.Auditor, Disabled: u.Disabled, DepartmentID: u.DepartmentID, Version: u.Version}
	in.Name = models.CheckName("name", r.Cells["name"], &p)
	if name, ok := r.Cells["department"]; ok {
		id, known := i.departments[name]
		if in.DepartmentID = id; !known {
			p.Add("department", "is not an existing department; create it first")
		}
	}
	for column, is := range map[string]*bool{"admin": &in.Admin, "auditor": &in.Auditor} {
		if text, ok := r.Cells[column]; ok {
			*is = text == yes
			if text != yes && text != no {
				p.Add(column, "must be yes or no")
			}
		}
	}
	return in, p
}

func (i peopleImport) update(row *models.ImportedRow, u models.User, in UserChange) error {
	before, err1 := i.names.Of(i.q, u.DepartmentID)
	after, err2 := i.names.Of(i.q, in.DepartmentID)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	row.Change("name", u.Name, in.Name)
	row.Change("department", before, after)
	row.Change("admin", yesNo(u.Admin), yesNo(in.Admin))
	row.Change("auditor", yesNo(u.Auditor), yesNo(in.Auditor))
	if len(row.Changes) == 0 {
		return nil
	}
	row.Outcome = models.RowChanged
	_, err := i.accounts.updateUser(i.q, i.actor, u, in)
	return RefuseImportedRow(row, err, peopleFields)
}

func (i peopleImport) add(row *models.ImportedRow, in UserChange) error {
	u := models.User{Email: row.Email, Name: in.Name, Auditor: in.Auditor, DepartmentID: in.DepartmentID,
		SessionGeneration: 1, Version: 1, CreatedAt: i.q.Now()}
	if err := i.accounts.AddAccount(i.q, i.actor, &u); err != nil {
		return RefuseImportedRow(row, err, peopleFields)
	}
	department, err := i.names.Of(i.q, in.DepartmentID)
	row.Outcome = models.RowAdded
	row.Change("name", "", u.Name)
	row.Change("department", "", department)
	row.Change("auditor", no, yesNo(u.Auditor))
	return err
}

const yes, no = "yes", "no"

func yesNo(is bool) string {
	if is {
		return yes
	}
	return no
}

// PersonCells formats an account in the order of PeopleColumns; nil for a service account,
// which is not imported.
func PersonCells(u models.User, department string) []string {
	if u.IsService() {
		return nil
	}
	return []string{u.Email, u.Name, department, yesNo(u.Admin), yesNo(u.Auditor)}
}
