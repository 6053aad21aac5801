package handlers

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

func (a *App) departmentsRoutes(p *echo.Group) {
	p.GET("/departments", a.departmentsPage)
	p.POST("/departments", a.createDepartmentPage)
	p.GET("/departments/new", a.newDepartmentPage)
	p.GET("/departments/:id", a.departmentPage)
	p.POST("/departments/:id", a.renameDepartmentPage)
	p.GET("/departments/:id/delete", a.confirmDeleteDepartmentPage)
	p.POST("/departments/:id/delete", a.deleteDepartmentPage)
}

func (a *App) departmentsPage(c echo.Context) error {
	ctx := c.Request().Context()
	list, err := a.Accounts.Departments(ctx, actorOf(ctx), pageAfter(c, listLimit))
	if err != nil {
		return err
	}
	v := web.DepartmentsView{CanEdit: a.Access.May(actorOf(ctx), policies.Platform, policies.UserWrite)}
	for _, d := range list {
		v.Rows = append(v.Rows, web.DepartmentRow{Department: d.Department, Sums: d.DepartmentSums})
	}
	if n := len(list); n > 0 {
		v.Next = nextPage(c, n, listLimit, list[n-1].ID)
	}
	return a.render(c, http.StatusOK, web.DepartmentsPage(v))
}

func (a *App) newDepartmentPage(c echo.Context) error {
	if err := a.Access.Check(actorOf(c.Request().Context()), policies.Platform, policies.UserWrite); err != nil {
		return err
	}
	return a.render(c, http.StatusOK, web.DepartmentFormPage(web.DepartmentFormView{Form: formOf(0)}))
}

func (f *form) departmentInput() policies.DepartmentInput {
	return policies.DepartmentInput{Name: f.text("name"), Version: f.version()}
}

func (a *App) createDepartmentPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	d, err := a.Accounts.CreateDepartment(ctx, actorOf(ctx), f.departmentInput())
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			return web.DepartmentFormPage(web.DepartmentFormView{Form: f.asTyped().Refuse(err)}), nil
		})
	}
	return a.done(c, "/departments", models.Say("Department %s created.", d.Name))
}

// departmentForm is the form of a department, as it was typed or, when typed
// is nil, as it is.
func (a *App) departmentForm(c echo.Context, typed *web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	if err := a.Access.Check(actorOf(ctx), policies.Platform, policies.UserWrite); err != nil {
		return nil, err
	}
	d, err := a.Accounts.Department(ctx, actorOf(ctx), number(c, "id"))
	v := web.DepartmentFormView{ID: d.ID, Name: d.Name, People: d.People, Form: formOf(d.Version)}
	v.Form.Values["name"] = d.Name
	if typed != nil {
		v.Form = *typed
	}
	return web.DepartmentFormPage(v), err
}

func (a *App) departmentPage(c echo.Context) error {
	page, err := a.departmentForm(c, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) renameDepartmentPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	d, err := a.Accounts.RenameDepartment(ctx, actorOf(ctx), number(c, "id"), f.departmentInput())
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.asTyped().Refuse(err)
			return a.departmentForm(c, &w)
		})
	}
	return a.done(c, "/departments", models.Say("Department renamed to %s.", d.Name))
}

func (a *App) confirmDeleteDepartmentPage(c echo.Context) error {
	page, err := a.deleteDepartmentForm(c, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) deleteDepartmentForm(c echo.Context, refused error) (templ.Component, error) {
	ctx := c.Request().Context()
	if err := a.Access.Check(actorOf(ctx), policies.Platform, policies.UserWrite); err != nil {
		return nil, err
	}
	d, err := a.Accounts.Department(ctx, actorOf(ctx), number(c, "id"))
	v := web.ConfirmDeleteDepartment(d.Department)
	if refused != nil {
		v.Form = v.Form.Refuse(refused)
	}
	return web.ConfirmPage(v), err
}

func (a *App) deleteDepartmentPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if err := a.Accounts.DeleteDepartment(ctx, actorOf(ctx), number(c, "id"), f.version()); err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.deleteDepartmentForm(c, err) })
	}
	return a.done(c, "/departments", models.Say("Department deleted."))
}

// departmentOptions are the departments that a person may be put into.
func (a *App) departmentOptions(c echo.Context) ([]web.Option, error) {
	ctx := c.Request().Context()
	list, err := a.Accounts.DepartmentChoices(ctx, actorOf(ctx))
	options := []web.Option{{Label: web.T(a.spoken(c), "none")}}
	for _, d := range list {
		options = append(options, web.Option{Value: strconv.FormatInt(d.ID, 10), Label: d.Name})
	}
	return options, err
}
