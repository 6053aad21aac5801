package handlers

import (
	"context"
	"net/http"
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
	person := a.personWith(web.InvitationLink{})
	p.GET("/people/:id", a.page(person))
	p.POST("/people/:id", a.submit(person, a.updatePersonPage))
	p.POST("/people/:id/password-link", a.createPasswordLinkPage)
	p.GET("/people/:id/identities/:identity/delete", a.page(a.confirmDeleteIdentityPage))
	p.POST("/people/:id/identities/:identity/delete", a.submit(nil, a.deleteIdentityPage))
}

func (a *App) peoplePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	search := c.QueryParam("q")
	users, err := a.Accounts.Users(ctx, actorOf(ctx), search, pageAfter(c))
	if err != nil {
		return nil, err
	}
	departments, err := a.Accounts.DepartmentsOf(ctx, actorOf(ctx), users...)
	return web.PeoplePage(web.PeopleView{Rows: users, Departments: departments, Query: search,
		Next: nextPage(c, users, func(u models.User) int64 { return u.ID })}), err
}

// personWith is a person's page with the forms of the account and its password, and a link for a new
// password that was just made.
func (a *App) personWith(link web.InvitationLink) pageFunc {
	return func(ctx context.Context, c echo.Context) (templ.Component, error) {
		v, err := a.personView(ctx, c)
		v.PasswordLink = link
		return web.PersonPage(v), err
	}
}

func (a *App) personView(ctx context.Context, c echo.Context) (v web.PersonView, err error) {
	actor := actorOf(ctx)
	u, departments, err := a.Accounts.UserForm(ctx, actor, number(c, "id"))
	if err != nil {
		return v, err
	}
	v = web.PersonView{Person: u, Self: u.ID == actor.User.ID, Form: formOf(u.Version), Password: formOf(0),
		Departments: a.departmentOptions(c, departments)}
	v.Form.Values["name"] = u.Name
	for name, on := range map[string]bool{"admin": u.Admin, "auditor": u.Auditor, "disabled": u.Disabled} {
		if on {
			v.Form.Values[name] = "1"
		}
	}
	if u.DepartmentID != nil {
		v.Form.Values["department_id"] = strconv.FormatInt(*u.DepartmentID, 10)
	}
	if strings.HasSuffix(c.Path(), "/password-link") {
		v.Password = submittedOr(c, v.Password)
	} else {
		v.Form = submittedOr(c, v.Form)
	}
	if v.Identities, err = a.Accounts.Identities(ctx, actor, u.ID); err != nil {
		return v, err
	}
	if v.Passkeys, err = a.Accounts.Passkeys(ctx, actor, u.ID); err != nil {
		return v, err
	}
	places, err := a.Projects.Memberships(ctx, actor, u.ID)
	for _, p := range places {
		v.Memberships = append(v.Memberships, web.PersonMembership{ProjectID: p.Project.ID, Project: p.Project.Name, Role: p.Member.RoleName})
	}
	return v, err
}

func (a *App) updatePersonPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	in := policies.UserChange{Name: f.text("name"), Admin: f.bool("admin"), Auditor: f.bool("auditor"), Disabled: f.bool("disabled"),
		DepartmentID: f.amount("department_id"), EmailConfirmed: f.bool("email_confirmed"), Version: f.version()}
	if err := f.err(); err != nil {
		return redirect{}, err
	}
	u, err := a.Accounts.UpdateUser(ctx, actorOf(ctx), number(c, "id"), in)
	return redirect{path("people", u.ID), models.Say("Account %s updated.", u.Email)}, err
}

// createPasswordLinkPage makes a link for a new password, and shows it once.
func (a *App) createPasswordLinkPage(c echo.Context) error {
	l, err := a.Accounts.CreatePasswordLink(c.Request().Context(), actorOf(c.Request().Context()), number(c, "id"))
	if err != nil {
		return a.refused(c, &form{}, err, a.personWith(web.InvitationLink{}))
	}
	return a.showPage(c, http.StatusCreated, a.personWith(web.InvitationLink{URL: a.portalURL(c.Request()) + l.Path(),
		ExpiresAt: l.ExpiresAt}))
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
