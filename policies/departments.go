package policies

import (
	"context"
	"slices"

	"weir/models"
	"weir/models/store"
)

// DepartmentInput is the input for creating or renaming a department.
type DepartmentInput struct {
	Name    string `json:"name" maxLength:"100"`
	Version int64  `json:"-"`
}

func (in *DepartmentInput) normalize() error {
	var p models.Problems
	in.Name = models.CheckName("name", in.Name, &p)
	return p.Err()
}

// DepartmentView is a department with its totals.
type DepartmentView struct {
	models.Department
	models.DepartmentSums
}

// Departments lists departments with their totals, by id.
func (a *Accounts) Departments(ctx context.Context, actor Actor, page store.Page) ([]DepartmentView, error) {
	if err := a.access.Check(actor, Platform, UserRead); err != nil {
		return nil, err
	}
	q := a.store.Read(ctx)
	list, err := q.Departments(page)
	if err != nil {
		return nil, err
	}
	return withSums(q, list)
}

// Department finds a department with its totals.
func (a *Accounts) Department(ctx context.Context, actor Actor, id int64) (v DepartmentView, err error) {
	if err := a.access.Check(actor, Platform, UserRead); err != nil {
		return v, err
	}
	q := a.store.Read(ctx)
	d, err := q.Department(id)
	if err != nil {
		return v, err
	}
	views, err := withSums(q, []models.Department{d})
	if err != nil {
		return v, err
	}
	return views[0], nil
}

func withSums(q *store.Queries, list []models.Department) ([]DepartmentView, error) {
	ids := models.Map(list, func(d models.Department) int64 { return d.ID })
	sums, err := q.DepartmentSums(ids)
	views := models.Map(list, func(d models.Department) DepartmentView { return DepartmentView{d, sums[d.ID]} })
	return views, err
}

// DepartmentForm returns a department for a form that changes or deletes it; with
// id 0, an empty one for a form that creates one.
func (a *Accounts) DepartmentForm(ctx context.Context, actor Actor, id int64) (v DepartmentView, err error) {
	if err := a.access.Check(actor, Platform, UserWrite); err != nil || id == 0 {
		return v, err
	}
	return a.Department(ctx, actor, id)
}

// DepartmentsOf returns the names of the departments of some users, by id.
func (a *Accounts) DepartmentsOf(ctx context.Context, actor Actor, people ...models.User) (map[int64]string, error) {
	var ids []int64
	for _, u := range people {
		if err := a.access.CheckOwned(actor, u.ID, Platform, UserRead); err != nil {
			return nil, err
		}
		if u.DepartmentID != nil && !slices.Contains(ids, *u.DepartmentID) {
			ids = append(ids, *u.DepartmentID)
		}
	}
	return a.store.Read(ctx).DepartmentNames(ids)
}

// CreateDepartment adds a department.
func (a *Accounts) CreateDepartment(ctx context.Context, actor Actor, in DepartmentInput) (d models.Department, err error) {
	err = a.writeUsers(ctx, actor, func(q *store.Queries) error {
		if err := in.normalize(); err != nil {
			return err
		}
		n, err := q.CountDepartments()
		if err != nil {
			return err
		}
		if n >= store.MaxDepartments {
			return models.Conflict("The maximum of %d departments has been reached. Delete one first.", n)
		}
		d = models.Department{Name: in.Name, Version: 1, CreatedAt: q.Now()}
		if err := q.CreateDepartment(&d); err != nil {
			return err
		}
		return actor.Audit(q, Change{Action: "create", Object: "department", ID: d.ID, After: d})
	})
	return d, err
}

// RenameDepartment renames a department.
func (a *Accounts) RenameDepartment(ctx context.Context, actor Actor, id int64, in DepartmentInput) (d models.Department, err error) {
	err = a.writeUsers(ctx, actor, func(q *store.Queries) (err error) {
		if err := in.normalize(); err != nil {
			return err
		}
		if d, err = q.Department(id); err != nil {
			return err
		}
		if err := models.CheckVersion("department", in.Version, d.Version); err != nil {
			return err
		}
		before := d
		d.Name = in.Name
		if err := q.UpdateDepartment(&d); err != nil {
			return err
		}
		return actor.Audit(q, Change{Action: "update", Object: "department", ID: id, Before: before, After: d})
	})
	return d, err
}

// CheckDelete refuses to delete a department that has people.
func (d DepartmentView) CheckDelete() error {
	if d.People > 0 {
		return models.Conflict("%d people are in the department %s. Move them to another department first.", d.People, d.Name)
	}
	return nil
}

// DeleteDepartment removes a department without users.
func (a *Accounts) DeleteDepartment(ctx context.Context, actor Actor, id, version int64) error {
	return a.writeUsers(ctx, actor, func(q *store.Queries) error {
		d, err := q.Department(id)
		if err != nil {
			return err
		}
		if err := models.CheckVersion("department", version, d.Version); err != nil {
			return err
		}
		n, err := q.CountDepartmentPeople(id)
		if err != nil {
			return err
		}
		if err := (DepartmentView{d, models.DepartmentSums{People: n}}).CheckDelete(); err != nil {
			return err
		}
		if err := q.DeleteDepartment(id); err != nil {
			return err
		}
		return actor.Audit(q, Change{Action: "delete", Object: "department", ID: id, Before: d})
	})
}

// DepartmentNames caches names of departments by id, for imports.
type DepartmentNames map[int64]string

// Of is the name of a department; empty for nil.
func (n DepartmentNames) Of(q *store.Queries, id *int64) (string, error) {
	if id == nil {
		return "", nil
	}
	if name, known := n[*id]; known {
		return name, nil
	}
	d, err := q.Department(*id)
	n[*id] = d.Name
	return d.Name, err
}

// CheckDepartment refuses a department that does not exist; nil is none.
func CheckDepartment(q *store.Queries, id *int64) error {
	if id == nil {
		return nil
	}
	_, err := q.Department(*id)
	return models.NotFoundAs(err, models.Invalid("department_id", "department %d does not exist", *id))
}
