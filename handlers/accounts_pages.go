package handlers

import (
	"net/http"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

func (a *App) accountsRoutes(p *echo.Group) {
	p.GET("/tokens", a.tokensPage)
	p.POST("/tokens", a.createTokenPage)
	p.GET("/tokens/:id/delete", a.confirmDeleteTokenPage)
	p.POST("/tokens/:id/delete", a.deleteTokenPage)
	p.GET("/account", a.accountPage)
	p.POST("/account/password", a.changePasswordPage)
}

// tokensForm is the page of the actor's tokens.
func (a *App) tokensForm(c echo.Context, v web.TokensView) (templ.Component, error) {
	ctx := c.Request().Context()
	rows, err := a.Accounts.Tokens(ctx, actorOf(ctx))
	v.Rows = rows
	return web.TokensPage(v), err
}

func (a *App) tokensPage(c echo.Context) error {
	page, err := a.tokensForm(c, web.TokensView{Form: formOf(0)})
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) createTokenPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := policies.NewToken{Name: f.text("name")}
	if text := f.text("lifetime"); text != "" {
		if in.Lifetime, err = time.ParseDuration(text); err != nil || in.Lifetime <= 0 {
			f.problems.Add("lifetime", "must be a duration such as 720h")
		}
	}
	var t models.AccessToken
	var secret string
	if err = f.err(nil); err == nil {
		t, secret, err = a.Accounts.CreateToken(ctx, actorOf(ctx), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.tokensForm(c, web.TokensView{Form: f.asTyped().Refuse(err)}) })
	}
	page, err := a.tokensForm(c, web.TokensView{Form: formOf(0), Secret: secret, NewName: t.Name})
	if err != nil {
		return err
	}
	return a.render(c, http.StatusCreated, page)
}

func (a *App) confirmDeleteTokenPage(c echo.Context) error {
	ctx := c.Request().Context()
	tokens, err := a.Accounts.Tokens(ctx, actorOf(ctx))
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if t.ID == number(c, "id") {
			return a.render(c, http.StatusOK, web.ConfirmPage(web.ConfirmDeleteToken(t)))
		}
	}
	return models.NotFound("token")
}

func (a *App) deleteTokenPage(c echo.Context) error {
	ctx := c.Request().Context()
	if err := a.Accounts.DeleteToken(ctx, actorOf(ctx), number(c, "id")); err != nil {
		return err
	}
	return a.done(c, "/tokens", models.Say("Token revoked."))
}

func (a *App) accountPage(c echo.Context) error {
	page, err := a.accountForm(c, formOf(0))
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

// accountForm is the page of the actor's own account.
func (a *App) accountForm(c echo.Context, f web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	list, err := a.Accounts.Identities(ctx, actorOf(ctx), actorOf(ctx).User.ID)
	if err != nil {
		return nil, err
	}
	choice, err := a.notificationChoice(ctx)
	return web.AccountPage(web.AccountView{Form: f, Identities: list, Notifications: choice}), err
}

func (a *App) changePasswordPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	f.samePasswords()
	actor := actorOf(ctx)
	if err = f.err(nil); err == nil {
		err = a.Accounts.ChangePassword(ctx, actor, f.text("current"), f.text("password"))
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.accountForm(c, f.asTyped().Refuse(err)) })
	}
	if err := a.passwordChanged(ctx, actor.User.ID); err != nil {
		return err
	}
	return a.done(c, "/account", models.Say("Password changed. Your other sessions and all your tokens were revoked."))
}
