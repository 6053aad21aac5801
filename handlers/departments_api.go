package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

func (a rest) departmentsOperations(s section) {
	register(a, s, route{http.MethodGet, "/departments", 200, "list-departments",
		models.Say("List departments and their resource use; requires platform administrator")}, a.listDepartments)
	register(a, s, route{http.MethodPost, "/departments", 201, "create-department",
		models.Say("Create a department; requires platform administrator")}, a.createDepartment)
	register(a, s, route{http.MethodGet, "/departments/{id}", 200, "get-department",
		models.Say("Get a department; requires platform administrator")}, a.getDepartment)
	register(a, s, route{http.MethodPut, "/departments/{id}", 200, "rename-department",
		models.Say("Rename a department; requires platform administrator")}, a.renameDepartment)
	register(a, s, route{http.MethodDelete, "/departments/{id}", 204, "delete-department",
		models.Say("Delete an empty department; requires platform administrator")}, a.deleteDepartment)
}

// Department is where people work.
type Department struct {
	ID        int64            `json:"id"`
	Name      string           `json:"name"`
	People    int64            `json:"people" doc:"number of accounts, including disabled ones"`
	Projects  int64            `json:"projects" doc:"number of projects with a member from the department"`
	InUse     models.Resources `json:"in_use" doc:"resources in use"`
	CreatedAt time.Time        `json:"created_at"`
}

func departmentOf(v policies.DepartmentView) Department {
	return Department{v.ID, v.Name, v.People, v.Projects, v.InUse, v.CreatedAt.UTC()}
}

func (a rest) listDepartments(ctx context.Context, in *Paging) (*Response[List[Department]], error) {
	return listed(*in, func(v policies.DepartmentView) int64 { return v.ID }, func(page store.Page) ([]policies.DepartmentView, error) {
		return a.Accounts.Departments(ctx, actorOf(ctx), page)
	}, departmentOf)
}

func (a rest) createDepartment(ctx context.Context, in *Create[policies.DepartmentInput]) (*Created[Department], error) {
	d, err := a.Accounts.CreateDepartment(ctx, actorOf(ctx), in.Body)
	return created(d.Version, departmentOf(policies.DepartmentView{Department: d}), err, "departments", d.ID)
}

func (a rest) getDepartment(ctx context.Context, in *ByID) (*Found[Department], error) {
	v, err := a.Accounts.Department(ctx, actorOf(ctx), in.ID)
	return found(v.Version, departmentOf(v), err)
}

func (a rest) renameDepartment(ctx context.Context, in *Update[policies.DepartmentInput]) (*Found[Department], error) {
	in.Body.Version = in.version
	if _, err := a.Accounts.RenameDepartment(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, err
	}
	return a.getDepartment(ctx, &in.ByID)
}

func (a rest) deleteDepartment(ctx context.Context, in *Versioned) (*Nothing, error) {
	return nil, a.Accounts.DeleteDepartment(ctx, actorOf(ctx), in.ID, in.version)
}
