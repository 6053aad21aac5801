package policies

import (
	"context"

	"weir/models"
)

// PeopleColumns are those of a table of people.
var PeopleColumns = []string{"email", "name", "department", "admin", "auditor"}

// PeopleColumnsNeeded are those that a table to import must have.
var PeopleColumnsNeeded = []string{"email", "name"}

// peopleFields are the columns of an account's fields.
var peopleFields = map[string]string{"department_id": "department"}

// ImportPeople adds and changes accounts as a table says, in one transaction;
// only administrators may. Nobody is removed or disabled. A new account has
// no password: nobody can sign in to it until an administrator sets one, or
// its person comes by a provider of sign-in that may link accounts. A dry run
// tells every row's outcome and changes nothing.
func (a *Accounts) ImportPeople(ctx context.Context, actor Actor, in models.Import) (models.ImportReport, error) {
	if err := a.access.Check(actor, Platform, "user", "write"); err != nil {
		return models.ImportReport{}, err
	}
	need := Need{Platform, "user", "write", 0}
	return a.access.Import(ctx, a.store, actor, need, in, func(q *models.Queries) (TakeRow, error) {
		i := peopleImport{accounts: a, q: q, actor: actor, departments: map[string]*int64{"": nil}, names: map[int64]string{}}
		if err := q.LockUsers(); err != nil {
			return nil, err
		}
		return i.take, i.find(in.Records)
	})
}

// peopleImport is an import within its transaction.
type peopleImport struct {
	accounts    *Accounts
	q           *models.Queries
	actor       Actor
	departments map[string]*int64 // by name, of those in the table
	names       map[int64]string  // of departments
}

// find looks the table's departments up, in pieces that both databases take.
func (i peopleImport) find(records []models.Record) error {
	var wanted []string
	for _, r := range records {
		wanted = append(wanted, r.Cells["department"])
	}
	const piece = 500
	for from := 0; from < len(wanted); from += piece {
		list, err := i.q.DepartmentsByNames(wanted[from:min(from+piece, len(wanted))])
		if err != nil {
			return err
		}
		for _, d := range list {
			i.departments[d.Name], i.names[d.ID] = &d.ID, d.Name
		}
	}
	return nil
}

func (i peopleImport) take(r models.Record) (row models.ImportedRow, err error) {
	row = models.ImportedRow{Line: r.Line, Email: r.Cells["email"], Outcome: models.RowUnchanged}
	u, err := i.q.UserByEmail(row.Email)
	if err != nil && models.KindOf(err) != models.KindNotFound {
		return row, err
	}
	known := err == nil
	in, problems := i.read(r, u)
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

// read is what a row says of a person, who keeps what it does not say.
func (i peopleImport) read(r models.Record, u models.User) (in UserChange, p models.Problems) {
	in = UserChange{Admin: u.Admin, Auditor: u.Auditor, Disabled: u.Disabled, DepartmentID: u.DepartmentID, Version: u.Version}
	in.Name = models.CheckName("name", r.Cells["name"], &p)
	if name, said := r.Cells["department"]; said {
		id, known := i.departments[name]
		if in.DepartmentID = id; !known {
			p.Add("department", "is not the name of a department; create it first")
		}
	}
	for column, is := range map[string]*bool{"admin": &in.Admin, "auditor": &in.Auditor} {
		if text, said := r.Cells[column]; said {
			*is = text == yes
			if text != yes && text != no {
				p.Add(column, "must be yes or no")
			}
		}
	}
	return in, p
}

func (i peopleImport) update(row *models.ImportedRow, u models.User, in UserChange) error {
	before, err := i.department(u.DepartmentID)
	if err != nil {
		return err
	}
	after, err := i.department(in.DepartmentID)
	if err != nil {
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
	_, err = i.accounts.updateUser(i.q, i.actor, u, in)
	return RefuseRow(row, err, peopleFields)
}

func (i peopleImport) add(row *models.ImportedRow, in UserChange) error {
	u := models.User{Email: row.Email, Name: in.Name, Auditor: in.Auditor, DepartmentID: in.DepartmentID, SessionEpoch: 1, Version: 1, CreatedAt: i.q.Now()}
	if err := i.accounts.insert(i.q, i.actor, &u); err != nil {
		return RefuseRow(row, err, peopleFields)
	}
	department, err := i.department(in.DepartmentID)
	row.Outcome = models.RowAdded
	row.Change("name", "", u.Name)
	row.Change("department", "", department)
	row.Change("auditor", no, yesNo(u.Auditor))
	return err
}

// department is a department's name; empty for none.
func (i peopleImport) department(id *int64) (string, error) {
	if id == nil {
		return "", nil
	}
	if name, known := i.names[*id]; known {
		return name, nil
	}
	d, err := i.q.Department(*id)
	i.names[*id] = d.Name
	return d.Name, err
}

const yes, no = "yes", "no"

func yesNo(is bool) string {
	if is {
		return yes
	}
	return no
}

// PersonCells are an account's cells, in the order of PeopleColumns.
func PersonCells(u models.User, department string) []string {
	return []string{u.Email, u.Name, department, yesNo(u.Admin), yesNo(u.Auditor)}
}
