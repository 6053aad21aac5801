package handlers

import (
	"context"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

func (a *App) peopleRoutes(p *echo.Group) {
	p.GET("/people", a.page(a.peoplePage))
	p.POST("/people", a.submit(a.newPersonPage, a.createPersonPage))
	p.GET("/people/new", a.page(a.newPersonPage))
	p.GET("/people/:id", a.page(a.personPage))
	p.POST("/people/:id", a.submit(a.personPage, a.updatePersonPage))
	p.POST("/people/:id/password", a.submit(a.personPage, a.resetPasswordPage))
	p.GET("/people/:id/identities/:identity/delete", a.page(a.confirmDeleteIdentityPage))
	p.POST("/people/:id/identities/:identity/delete", a.submit(nil, a.deleteIdentityPage))
}

func (a *App) peoplePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	search := c.QueryParam("q")
	users, err := a.Accounts.Users(ctx, actorOf(ctx), search, pageAfter(c, pageSize))
	if err != nil {
		return nil, err
	}
	departments, err := a.Accounts.DepartmentsOf(ctx, actorOf(ctx), users...)
	v := web.PeopleView{Rows: users, Departments: departments, Query: search}
	if n := len(users); n > 0 {
		v.Next = nextPage(c, n, pageSize, users[n-1].ID)
	}
	return web.PeoplePage(v), err
}

func (a *App) newPersonPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	_, departments, err := a.Accounts.UserForm(ctx, actorOf(ctx), 0)
	return web.PersonFormPage(web.PersonFormView{Form: submittedOr(c, formOf(0)), Departments: a.departmentOptions(c, departments)}), err
}

func (a *App) createPersonPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	in := policies.NewUser{Email: f.text("email"), Name: f.text("name"), Password: f.text("password"), Admin: f.bool("admin"), Auditor: f.bool("auditor"),
		DepartmentID: f.amount("department_id")}
	if err := f.err(); err != nil {
		return redirect{}, err
	}
	u, err := a.Accounts.CreateUser(ctx, actorOf(ctx), in)
	return redirect{"/people", models.Say("Account %s created.", u.Email)}, err
}

// personPage is a person's page with the forms of the account and its password.
func (a *App) personPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor := actorOf(ctx)
	u, departments, err := a.Accounts.UserForm(ctx, actor, number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.PersonView{Person: u, Self: u.ID == actor.User.ID, Form: formOf(u.Version), Password: formOf(0), Departments: a.departmentOptions(c, departments)}
	v.Form.Values["name"] = u.Name
	for name, on := range map[string]bool{"admin": u.Admin, "auditor": u.Auditor, "disabled": u.Disabled} {
		if on {
			v.Form.Values[name] = "1"
		}
	}
	if u.DepartmentID != nil {
		v.Form.Values["department_id"] = strconv.FormatInt(*u.DepartmentID, 10)
	}
	if strings.HasSuffix(c.Path(), "/password") {
		v.Password = submittedOr(c, v.Password)
	} else {
		v.Form = submittedOr(c, v.Form)
	}
	if v.Identities, err = a.Accounts.Identities(ctx, actor, u.ID); err != nil {
		return nil, err
	}
	places, err := a.Projects.Memberships(ctx, actor, u.ID)
	for _, p := range places {
		v.Memberships = append(v.Memberships, web.PersonMembership{ProjectID: p.Project.ID, Project: p.Project.Name, Role: p.Member.RoleName})
	}
	return web.PersonPage(v), err
}

func (a *App) updatePersonPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	in := policies.UserChange{Name: f.text("name"), Admin: f.bool("admin"), Auditor: f.bool("auditor"), Disabled: f.bool("disabled"),
		DepartmentID: f.amount("department_id"), Version: f.version()}
	if err := f.err(); err != nil {
		return redirect{}, err
	}
	u, err := a.Accounts.UpdateUser(ctx, actorOf(ctx), number(c, "id"), in)
	return redirect{path("people", u.ID), models.Say("Account %s updated.", u.Email)}, err
}

func (a *App) resetPasswordPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	id := number(c, "id")
	err := a.Accounts.ResetPassword(ctx, actorOf(ctx), id, f.text("password"))
	return redirect{path("people", id), models.Say("Password changed. All sessions and tokens of this account were revoked.")}, err
}

func (a *App) confirmDeleteIdentityPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	u, identity, err := a.Accounts.IdentityForm(ctx, actorOf(ctx), number(c, "id"), number(c, "identity"))
	return web.ConfirmPage(web.ConfirmDeleteIdentity(u, identity)), err
}

func (a *App) deleteIdentityPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	user := number(c, "id")
	err := a.Accounts.DeleteIdentity(ctx, actorOf(ctx), user, number(c, "identity"))
	return redirect{path("people", user), models.Say("The identity was unlinked from this account and its sessions were ended.")}, err
}
