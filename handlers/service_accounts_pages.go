package handlers

import (
	"context"
	"net/http"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) serviceAccountsRoutes(p *echo.Group) {
	p.GET("/projects/:id/service-accounts/new", a.page(a.serviceAccountPage))
	p.POST("/projects/:id/service-accounts", a.submit(a.serviceAccountPage, a.createServiceAccountPage))
	p.GET("/projects/:id/members/:member/tokens", a.page(a.serviceTokensWith("", "")))
	p.POST("/projects/:id/members/:member/tokens", a.createServiceTokenPage)
	p.GET("/projects/:id/members/:member/tokens/:token/delete", a.page(a.confirmDeleteServiceTokenPage))
	p.POST("/projects/:id/members/:member/tokens/:token/delete", a.submit(nil, a.deleteServiceTokenPage))
}

// serviceAccountPage is the form of a new service account.
func (a *App) serviceAccountPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	form, err := a.Projects.MemberForm(ctx, actorOf(ctx), number(c, "id"), 0)
	if err != nil {
		return nil, err
	}
	v := memberFormOf(form)
	v.Service, v.Form = true, submittedOr(c, v.Form)
	return web.MemberFormPage(v), nil
}

func (a *App) createServiceAccountPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project, in := number(c, "id"), projects.ServiceAccountInput{Name: f.text("name"), RoleID: f.number("role_id"), Until: f.lastDay("until")}
	if err := f.errWith(in.Check(a.Store.Now())); err != nil {
		return redirect{}, err
	}
	m, err := a.Projects.CreateServiceAccount(ctx, actorOf(ctx), project, in)
	return redirect{path("projects", project, "members", m.ID, "tokens"), models.Say("%s is now a member.", in.Name)}, err
}

// serviceTokensWith is the page of a service account's tokens, with one that was just
// created.
func (a *App) serviceTokensWith(name, secret string) pageFunc {
	return func(ctx context.Context, c echo.Context) (templ.Component, error) {
		project, member := number(c, "id"), number(c, "member")
		account, err := a.Accounts.ServiceAccount(ctx, actorOf(ctx), project, member)
		if err != nil {
			return nil, err
		}
		rows, err := a.Accounts.ServiceTokens(ctx, actorOf(ctx), project, member)
		return web.TokensPage(web.TokensView{Form: submittedOr(c, web.NewTokenForm()), Rows: rows, NewName: name, Secret: secret,
			Account: &account}), err
	}
}

func (a *App) createServiceTokenPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := f.newToken()
	var t models.AccessToken
	var secret string
	if err = f.errWith(in.Check()); err == nil {
		t, secret, err = a.Accounts.CreateServiceToken(ctx, actorOf(ctx), number(c, "id"), number(c, "member"), in)
	}
	if err != nil {
		return a.refused(c, f, err, a.serviceTokensWith("", ""))
	}
	return a.showPage(c, http.StatusCreated, a.serviceTokensWith(t.Name, secret))
}

func (a *App) confirmDeleteServiceTokenPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	project, member := number(c, "id"), number(c, "member")
	list, err := a.Accounts.ServiceTokens(ctx, actorOf(ctx), project, member)
	t, err := find(list, err, models.NotFound("token"), func(t models.AccessToken) bool { return t.ID == number(c, "token") })
	return confirmPage(c, web.ConfirmDeleteToken(t, web.ServiceTokensPath(project, member))), err
}

func (a *App) deleteServiceTokenPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	project, member := number(c, "id"), number(c, "member")
	return redirect{web.ServiceTokensPath(project, member), models.Say("Token revoked.")},
		a.Accounts.DeleteServiceToken(ctx, actorOf(ctx), project, member, number(c, "token"))
}
