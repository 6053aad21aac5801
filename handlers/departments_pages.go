package handlers

import (
	"context"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

func (a *App) departmentsRoutes(p *echo.Group) {
	p.GET("/departments", a.page(a.departmentsPage))
	p.POST("/departments", a.submit(a.departmentPage, a.createDepartmentPage))
	p.GET("/departments/new", a.page(a.departmentPage))
	p.GET("/departments/:id", a.page(a.departmentPage))
	p.POST("/departments/:id", a.submit(a.departmentPage, a.renameDepartmentPage))
	p.GET("/departments/:id/delete", a.page(a.confirmDeleteDepartmentPage))
	p.POST("/departments/:id/delete", a.submit(a.confirmDeleteDepartmentPage, a.deleteDepartmentPage))
}

func (a *App) departmentsPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	list, err := a.Accounts.Departments(ctx, actorOf(ctx), pageAfter(c))
	return web.DepartmentsPage(web.DepartmentsView{
		Rows: models.Map(list, func(d policies.DepartmentView) web.DepartmentRow {
			return web.DepartmentRow{Department: d.Department, Sums: d.DepartmentSums}
		}),
		Next: nextPage(c, list, func(d policies.DepartmentView) int64 { return d.ID })}), err
}

func (f *form) departmentInput() policies.DepartmentInput {
	return policies.DepartmentInput{Name: f.text("name"), Version: f.version()}
}

// departmentPage is the form of a department, or of a new one.
func (a *App) departmentPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	d, err := a.Accounts.DepartmentForm(ctx, actorOf(ctx), optionalNumber(c, "id"))
	v := web.DepartmentFormView{ID: d.ID, Name: d.Name, Blocked: d.CheckDelete(), Form: formOf(d.Version)}
	v.Form.Values["name"] = d.Name
	v.Form = submittedOr(c, v.Form)
	return web.DepartmentFormPage(v), err
}

func (a *App) createDepartmentPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	d, err := a.Accounts.CreateDepartment(ctx, actorOf(ctx), f.departmentInput())
	return redirect{"/departments", models.Say("Department %s created.", d.Name)}, err
}

func (a *App) renameDepartmentPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	d, err := a.Accounts.RenameDepartment(ctx, actorOf(ctx), number(c, "id"), f.departmentInput())
	return redirect{"/departments", models.Say("Department renamed to %s.", d.Name)}, err
}

func (a *App) confirmDeleteDepartmentPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	d, err := a.Accounts.DepartmentForm(ctx, actorOf(ctx), number(c, "id"))
	return confirmPage(c, web.ConfirmDeleteDepartment(d.Department, d.CheckDelete())), err
}

func (a *App) deleteDepartmentPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	err := a.Accounts.DeleteDepartment(ctx, actorOf(ctx), number(c, "id"), f.version())
	return redirect{"/departments", models.Say("Department deleted.")}, err
}

// departmentOptions are the departments to choose from, and none.
func (a *App) departmentOptions(c echo.Context, list []models.Department) []web.Option {
	options := []web.Option{{Label: web.T(a.localized(c), "none")}}
	for _, d := range list {
		options = append(options, web.Option{Value: strconv.FormatInt(d.ID, 10), Label: d.Name})
	}
	return options
}
