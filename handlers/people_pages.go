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

func (a *App) peopleRoutes(p *echo.Group) {
	p.GET("/people", a.peoplePage)
	p.POST("/people", a.createPersonPage)
	p.GET("/people/new", a.newPersonPage)
	p.GET("/people/:id", a.personPage)
	p.POST("/people/:id", a.updatePersonPage)
	p.POST("/people/:id/password", a.resetPasswordPage)
	p.GET("/people/:id/identities/:identity/delete", a.confirmDeleteIdentityPage)
	p.POST("/people/:id/identities/:identity/delete", a.deleteIdentityPage)
}

func (a *App) peoplePage(c echo.Context) error {
	ctx := c.Request().Context()
	search := c.QueryParam("q")
	users, err := a.Accounts.Users(ctx, actorOf(ctx), search, pageAfter(c, listLimit))
	if err != nil {
		return err
	}
	departments, err := a.Accounts.DepartmentsOf(ctx, actorOf(ctx), users...)
	if err != nil {
		return err
	}
	v := web.PeopleView{CanAdd: a.Access.May(actorOf(ctx), policies.Platform, policies.UserWrite), Rows: users, Departments: departments, Query: search}
	if n := len(users); n > 0 {
		v.Next = nextPage(c, n, listLimit, users[n-1].ID)
	}
	return a.render(c, http.StatusOK, web.PeoplePage(v))
}

func (a *App) newPersonPage(c echo.Context) error {
	if err := a.Access.Check(actorOf(c.Request().Context()), policies.Platform, policies.UserWrite); err != nil {
		return err
	}
	page, err := a.newPersonForm(c, formOf(0))
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) newPersonForm(c echo.Context, f web.Form) (templ.Component, error) {
	departments, err := a.departmentOptions(c)
	return web.PersonFormPage(web.PersonFormView{Form: f, Departments: departments}), err
}

func (a *App) createPersonPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := policies.NewUser{Email: f.text("email"), Name: f.text("name"), Password: f.text("password"), Admin: f.bool("admin"), Auditor: f.bool("auditor"),
		DepartmentID: f.amount("department_id")}
	var u models.User
	if err = f.err(nil); err == nil {
		u, err = a.Accounts.CreateUser(c.Request().Context(), actorOf(c.Request().Context()), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.newPersonForm(c, f.asTyped().Refuse(err)) })
	}
	return a.done(c, "/people", models.Say("Account %s created.", u.Email))
}

// personForm is a person's page with the forms that came back, if any did.
func (a *App) personForm(c echo.Context, f, password *web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	if err := a.Access.Check(actor, policies.Platform, policies.UserRead); err != nil {
		return nil, err
	}
	u, err := a.Accounts.User(ctx, actor, number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.PersonView{Person: u, CanEdit: a.Access.May(actor, policies.Platform, policies.UserWrite), Self: u.ID == actor.User.ID, Form: formOf(u.Version), Password: formOf(0)}
	v.Form.Values["name"] = u.Name
	for name, on := range map[string]bool{"admin": u.Admin, "auditor": u.Auditor, "disabled": u.Disabled} {
		if on {
			v.Form.Values[name] = "1"
		}
	}
	if u.DepartmentID != nil {
		v.Form.Values["department_id"] = strconv.FormatInt(*u.DepartmentID, 10)
	}
	if v.Departments, err = a.departmentOptions(c); err != nil {
		return nil, err
	}
	if v.Identities, err = a.Accounts.Identities(ctx, actor, u.ID); err != nil {
		return nil, err
	}
	places, err := a.Projects.Participations(ctx, actor, u.ID)
	for _, p := range places {
		v.Places = append(v.Places, web.PersonPlace{ProjectID: p.Project.ID, Project: p.Project.Name, Role: p.Member.RoleName})
	}
	if f != nil {
		v.Form = *f
	}
	if password != nil {
		v.Password = *password
	}
	return web.PersonPage(v), err
}

func (a *App) personPage(c echo.Context) error {
	page, err := a.personForm(c, nil, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) updatePersonPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := policies.UserChange{Name: f.text("name"), Admin: f.bool("admin"), Auditor: f.bool("auditor"), Disabled: f.bool("disabled"),
		DepartmentID: f.amount("department_id"), Version: f.version()}
	var u models.User
	if err = f.err(nil); err == nil {
		u, err = a.Accounts.UpdateUser(c.Request().Context(), actorOf(c.Request().Context()), number(c, "id"), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.asTyped().Refuse(err)
			return a.personForm(c, &w, nil)
		})
	}
	a.Wake()
	return a.done(c, path("people", u.ID), models.Say("Account %s updated.", u.Email))
}

func (a *App) resetPasswordPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	id := number(c, "id")
	if err := a.Accounts.ResetPassword(ctx, actorOf(ctx), id, f.text("password")); err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.asTyped().Refuse(err)
			return a.personForm(c, nil, &w)
		})
	}
	return a.done(c, path("people", id), models.Say("Password changed. All sessions and tokens of this account were revoked."))
}

func (a *App) confirmDeleteIdentityPage(c echo.Context) error {
	ctx := c.Request().Context()
	if err := a.Access.Check(actorOf(ctx), policies.Platform, policies.UserWrite); err != nil {
		return err
	}
	u, err := a.Accounts.User(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	list, err := a.Accounts.Identities(ctx, actorOf(ctx), u.ID)
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.ID == number(c, "identity") {
			return a.render(c, http.StatusOK, web.ConfirmPage(web.ConfirmDeleteIdentity(u, i)))
		}
	}
	return models.NotFound("identity")
}

func (a *App) deleteIdentityPage(c echo.Context) error {
	ctx := c.Request().Context()
	user := number(c, "id")
	if err := a.Accounts.DeleteIdentity(ctx, actorOf(ctx), user, number(c, "identity")); err != nil {
		return err
	}
	return a.done(c, path("people", user), models.Say("The identity was unlinked from this account and its sessions were ended."))
}
