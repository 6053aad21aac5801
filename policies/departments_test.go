package policies_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

func (d *fixture) department(t *testing.T, name string) models.Department {
	t.Helper()
	one, err := d.CreateDepartment(d.ctx, d.root, policies.DepartmentInput{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func TestDepartments(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		vision, speech := d.department(t, "Vision"), d.department(t, " Speech ")
		ada, err := d.CreateUser(d.ctx, d.root, policies.NewUser{Email: "ada@example.org", Name: "Ada", Password: password, DepartmentID: &vision.ID})
		if err != nil || ada.DepartmentID == nil || *ada.DepartmentID != vision.ID {
			t.Fatalf("%+v, %v", ada, err)
		}
		list, err := d.Departments(d.ctx, d.root, store.Page{})
		if err != nil || len(list) != 2 || list[0].People != 1 || list[1].People != 0 || list[1].Name != "Speech" {
			t.Errorf("%+v, %v", list, err)
		}
		err = d.DeleteDepartment(d.ctx, d.root, vision.ID, 0)
		want(t, err, models.KindConflict)
		if !strings.Contains(err.Error(), "1 person is in the department Vision") {
			t.Errorf("does not say how many: %v", err)
		}
		if _, err := d.UpdateUser(d.ctx, d.root, ada.ID, policies.UserChange{Name: "Ada", DepartmentID: &speech.ID}); err != nil {
			t.Fatal(err)
		}
		renamed, err := d.RenameDepartment(d.ctx, d.root, vision.ID, policies.DepartmentInput{Name: "Sight", Version: 1})
		if err != nil || renamed.Name != "Sight" || renamed.Version != 2 {
			t.Errorf("%+v, %v", renamed, err)
		}
		_, err = d.RenameDepartment(d.ctx, d.root, vision.ID, policies.DepartmentInput{Name: "Seeing", Version: 1})
		want(t, err, models.KindConflict)
		want(t, d.DeleteDepartment(d.ctx, d.root, vision.ID, 1), models.KindConflict)
		if err := d.DeleteDepartment(d.ctx, d.root, vision.ID, 2); err != nil {
			t.Error(err)
		}
		_, err = d.Department(d.ctx, d.root, vision.ID)
		want(t, err, models.KindNotFound)
		entries, err := d.store.Read(d.ctx).Audit(store.AuditFilter{Object: "department"}, store.Page{})
		if err != nil || len(entries) != 4 || entries[0].Action != "delete" || !strings.Contains(entries[0].Before, "Sight") {
			t.Errorf("%+v, %v", entries, err)
		}
	})
}

func TestBadInputsOfDepartments(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		one := d.department(t, "Vision")
		none := one.ID + 10_000
		storetest.InTx(t, d.store, func(q *store.Queries) error {
			for i := range store.MaxDepartments - 1 {
				more := models.Department{Name: fmt.Sprint("more ", i), Version: 1, CreatedAt: q.Now()}
				if err := q.CreateDepartment(&more); err != nil {
					return err
				}
			}
			return nil
		})
		for name, c := range map[string]struct {
			err  error
			kind models.Kind
		}{
			"empty":       {second(d.CreateDepartment(d.ctx, d.root, policies.DepartmentInput{})), models.KindInvalid},
			"long":        {second(d.CreateDepartment(d.ctx, d.root, policies.DepartmentInput{Name: strings.Repeat("x", 101)})), models.KindInvalid},
			"NUL":         {second(d.CreateDepartment(d.ctx, d.root, policies.DepartmentInput{Name: "a\x00"})), models.KindInvalid},
			"too many":    {second(d.CreateDepartment(d.ctx, d.root, policies.DepartmentInput{Name: "one more"})), models.KindConflict},
			"taken":       {second(d.RenameDepartment(d.ctx, d.root, one.ID, policies.DepartmentInput{Name: "more 1"})), models.KindConflict},
			"none":        {second(d.RenameDepartment(d.ctx, d.root, none, policies.DepartmentInput{Name: "x"})), models.KindNotFound},
			"none to end": {d.DeleteDepartment(d.ctx, d.root, none, 0), models.KindNotFound},
			"of a person": {second(d.UpdateUser(d.ctx, d.root, d.root.User.ID, policies.UserChange{Name: "Root", Admin: true, DepartmentID: &none})), models.KindInvalid},
			"of a new one": {second(d.CreateUser(d.ctx, d.root,
				policies.NewUser{Email: "x@example.org", Name: "X", Password: password, DepartmentID: &none})), models.KindInvalid},
		} {
			if models.KindOf(c.err) != c.kind || c.err == nil {
				t.Errorf("%s: %v", name, c.err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestDepartmentsAreForAdministrators(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		one := d.department(t, "Vision")
		ada := d.load(t, d.add(t, "ada@example.org", false))
		for name, call := range map[string]func(policies.Actor) error{
			"list":  func(a policies.Actor) error { return second(d.Departments(d.ctx, a, store.Page{})) },
			"read":  func(a policies.Actor) error { return second(d.Department(d.ctx, a, one.ID)) },
			"form":  func(a policies.Actor) error { return second(d.DepartmentForm(d.ctx, a, 0)) },
			"names": func(a policies.Actor) error { return second(d.DepartmentsOf(d.ctx, a, d.root.User)) },
			"create": func(a policies.Actor) error {
				return second(d.CreateDepartment(d.ctx, a, policies.DepartmentInput{Name: "x"}))
			},
			"rename": func(a policies.Actor) error {
				return second(d.RenameDepartment(d.ctx, a, one.ID, policies.DepartmentInput{Name: "x"}))
			},
			"delete": func(a policies.Actor) error { return d.DeleteDepartment(d.ctx, a, one.ID, 0) },
			"import": func(a policies.Actor) error { return second(d.ImportPeople(d.ctx, a, models.Import{DryRun: true})) },
		} {
			want(t, call(ada), models.KindForbidden)
			if err := call(policies.Actor{}); models.KindOf(err) != models.KindUnauthenticated {
				t.Errorf("%s by nobody: %v", name, err)
			}
		}
	})
}

// No account ends in a deleted department.
func TestDeletingADepartmentConcurrently(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		for round := range 10 {
			one := d.department(t, fmt.Sprint("department ", round))
			u := storetest.User(t, d.store, fmt.Sprintf("user%d@example.org", round), false)
			var errs [2]error
			storetest.Concurrently(2, func(i int) {
				if i == 0 {
					errs[0] = d.DeleteDepartment(d.ctx, d.root, one.ID, 0)
				} else {
					_, errs[1] = d.UpdateUser(d.ctx, d.root, u.ID, policies.UserChange{Name: "U", DepartmentID: &one.ID})
				}
			})
			if (errs[0] == nil) == (errs[1] == nil) {
				t.Errorf("deleted: %v, entered: %v", errs[0], errs[1])
			}
			for _, err := range errs {
				if kind := models.KindOf(err); err != nil && kind != models.KindConflict && kind != models.KindInvalid {
					t.Error(err)
				}
			}
		}
	})
}

// peopleRows makes records of email, name, department, admin and auditor.
func peopleRows(lines ...[5]string) (list []models.Record) {
	for i, line := range lines {
		r := models.Record{Line: i + 2, Cells: map[string]string{}}
		for j, cell := range line {
			r.Cells[policies.PeopleColumns[j]] = cell
		}
		list = append(list, r)
	}
	return list
}

func TestImportPeople(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		d.department(t, "Vision")
		ada := d.add(t, "ada@example.org", false)
		table := peopleRows([5]string{"ada@example.org", "Ada Lovelace", "Vision", "no", "yes"}, [5]string{"NEW@example.org", "New", "", "no", "no"},
			[5]string{"root@example.org", d.root.User.Name, "", "yes", "no"})
		dry, err := d.ImportPeople(d.ctx, d.root, models.Import{Records: table, DryRun: true})
		if err != nil || dry.Count(models.RowChanged) != 1 || dry.Count(models.RowAdded) != 1 || dry.Count(models.RowUnchanged) != 1 {
			t.Fatalf("%+v, %v", dry, err)
		}
		if _, err := d.store.Read(d.ctx).UserByEmail("new@example.org"); models.KindOf(err) != models.KindNotFound {
			t.Errorf("a dry run made an account: %v", err)
		}
		done, err := d.ImportPeople(d.ctx, d.root, models.Import{Records: table, Plan: dry.Plan})
		if err != nil || !done.Done {
			t.Fatalf("%+v, %v", done, err)
		}
		u, err := d.store.Read(d.ctx).User(ada.ID)
		if err != nil || u.Name != "Ada Lovelace" || u.DepartmentID == nil || !u.Auditor || u.PasswordHash != ada.PasswordHash {
			t.Errorf("%+v, %v", u, err)
		}
		_, err = d.SignIn(d.ctx, "here", "new@example.org", "")
		want(t, err, models.KindUnauthenticated)
		fresh, err := d.store.Read(d.ctx).UserByEmail("new@example.org")
		if err != nil || fresh.PasswordHash != "" {
			t.Errorf("%+v, %v", fresh, err)
		}
		if err := d.ResetPassword(d.ctx, d.root, fresh.ID, password); err != nil { // opens it
			t.Error(err)
		}
		if _, err := d.SignIn(d.ctx, "here", "new@example.org", password); err != nil {
			t.Error(err)
		}
	})
}

func TestWrongRowsOfPeople(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		for column, line := range map[string][5]string{
			"email":      {"no address", "X", "", "no", "no"},
			"name":       {"x@example.org", "", "", "no", "no"},
			"department": {"x@example.org", "X", "Nowhere", "no", "no"},
			"admin":      {"x@example.org", "X", "", "maybe", "no"},
			"auditor":    {"x@example.org", "X", "", "no", ""},
		} {
			report, err := d.ImportPeople(d.ctx, d.root, models.Import{Records: peopleRows(line), DryRun: true})
			if err != nil || report.Rows[0].Outcome != models.RowRefused || report.Rows[0].Refusals[0].Name != column {
				t.Errorf("%s: %+v, %v", column, report, err)
			}
		}
		for name, line := range map[string][5]string{
			"an administrator without a password": {"x@example.org", "X", "", "yes", "no"},
			"the last administrator":              {"root@example.org", "Root", "", "no", "no"},
		} {
			report, err := d.ImportPeople(d.ctx, d.root, models.Import{Records: peopleRows(line), DryRun: true})
			if err != nil || report.Rows[0].Outcome != models.RowRefused {
				t.Errorf("%s: %+v, %v", name, report, err)
			}
		}
	})
}
