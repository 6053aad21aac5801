package handlers

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

func (a *App) accountsRoutes(p *echo.Group) {
	p.GET("/tokens", a.page(a.tokensWith("", "")))
	p.POST("/tokens", a.createTokenPage)
	p.GET("/tokens/:id/delete", a.page(a.confirmDeleteTokenPage))
	p.POST("/tokens/:id/delete", a.submit(nil, a.deleteTokenPage))
	p.GET("/account", a.page(a.accountPage))
	p.POST("/account/password", a.submit(a.accountPage, a.changePasswordPage))
	a.secondFactorRoutes(p)
	a.passkeyRoutes(p)
	a.ownSessionsRoutes(p)
}

// tokensWith is the page of the actor's tokens, with one that was just created.
func (a *App) tokensWith(name, secret string) pageFunc {
	return func(ctx context.Context, c echo.Context) (templ.Component, error) {
		rows, err := a.Accounts.Tokens(ctx, actorOf(ctx))
		return web.TokensPage(web.TokensView{Form: submittedOr(c, web.NewTokenForm()), Rows: rows, NewName: name, Secret: secret}), err
	}
}

func (a *App) createTokenPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := f.newToken()
	var t models.AccessToken
	var secret string
	if err = f.errWith(in.Check()); err == nil {
		t, secret, err = a.Accounts.CreateToken(ctx, actorOf(ctx), in)
	}
	if err != nil {
		return a.refused(c, f, err, a.tokensWith("", ""))
	}
	return a.showPage(c, http.StatusCreated, a.tokensWith(t.Name, secret))
}

// newToken reads a form for a token.
func (f *form) newToken() policies.NewToken {
	in := policies.NewToken{Name: f.text("name")}
	for _, s := range models.TokenScopes {
		if f.bool("scope_" + string(s)) {
			in.Scopes = append(in.Scopes, s)
		}
	}
	if text := f.text("lifetime"); text != "" {
		var err error
		if in.Lifetime, err = time.ParseDuration(text); err != nil || in.Lifetime <= 0 {
			f.problems.Add("lifetime", "must be a duration such as 720h")
		}
	}
	return in
}

func (a *App) confirmDeleteTokenPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	list, err := a.Accounts.Tokens(ctx, actorOf(ctx))
	t, err := find(list, err, models.NotFound("token"), func(t models.AccessToken) bool { return t.ID == number(c, "id") })
	return confirmPage(c, web.ConfirmDeleteToken(t, "/tokens")), err
}

func (a *App) deleteTokenPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	return redirect{"/tokens", models.Say("Token revoked.")}, a.Accounts.DeleteToken(ctx, actorOf(ctx), number(c, "id"))
}

// accountPage is the page of the actor's own account.
func (a *App) accountPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	list, err := a.Accounts.Identities(ctx, actorOf(ctx), actorOf(ctx).User.ID)
	if err != nil {
		return nil, err
	}
	state, err := a.Accounts.SecondFactor(ctx, actorOf(ctx))
	if err != nil {
		return nil, err
	}
	passkeys, err := a.Accounts.Passkeys(ctx, actorOf(ctx), actorOf(ctx).User.ID)
	if err != nil {
		return nil, err
	}
	sessions, err := a.Accounts.Sessions(ctx, actorOf(ctx))
	if err != nil {
		return nil, err
	}
	choice, err := a.notificationChoice(ctx)
	self, password := a.accountForms(c)
	return web.AccountPage(web.AccountView{Form: password, Self: self, Identities: list,
		Sessions: web.SessionsView{All: sessions, Present: actorOf(ctx).Session}, SecondFactor: secondFactorView(state),
		Passkeys: passkeys, PasskeyOrigin: a.passkeyOrigin(), Notifications: choice}), err
}

// accountForms are the forms of the account, of which one may have been refused.
func (a *App) accountForms(c echo.Context) (self, password web.Form) {
	u := actorOf(c.Request().Context()).User
	self, password = formOf(u.Version), formOf(0)
	self.Values["name"], self.Values["time_zone"] = u.Name, u.TimeZone
	if c.Path() == "/account" {
		return submittedOr(c, self), password
	}
	return self, submittedOr(c, password)
}

func (a *App) updateSelfPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	zone := strings.TrimSpace(f.text("time_zone"))
	_, err := a.Accounts.UpdateSelf(ctx, actorOf(ctx), policies.SelfChange{Name: f.text("name"), TimeZone: &zone, Version: f.version()})
	return redirect{"/account", models.Say("Saved.")}, err
}

func (a *App) changePasswordPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	f.samePasswords()
	err := f.errWith(policies.CheckPassword(f.text("password")))
	if err == nil {
		err = a.Accounts.ChangePassword(ctx, actorOf(ctx), f.text("current"), f.text("password"))
	}
	return redirect{"/account", models.Say("Password changed. Your other sessions and all your tokens were revoked.")},
		a.continueSession(ctx, err)
}

func (a *App) ownSessionsRoutes(p *echo.Group) {
	p.POST("/account", a.submit(a.accountPage, a.updateSelfPage))
	p.GET("/account/sessions/:id/end", a.page(a.confirmEndSessionPage))
	p.POST("/account/sessions/:id/end", a.submit(nil, a.endSessionPage))
	p.GET("/account/sessions/end", a.page(confirmEndSessionsPage))
	p.POST("/account/sessions/end", a.submit(nil, a.endSessionsPage))
}

func (a *App) confirmEndSessionPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	list, err := a.Accounts.Sessions(ctx, actorOf(ctx))
	s, err := find(list, err, models.NotFound("session"), func(s models.Session) bool { return s.ID() == number(c, "id") })
	return confirmPage(c, web.ConfirmEndSession(ctx, s)), err
}

func (a *App) endSessionPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	return redirect{"/account", models.Say("The session was ended.")}, a.Accounts.EndSession(ctx, actorOf(ctx), number(c, "id"))
}

func confirmEndSessionsPage(context.Context, echo.Context) (templ.Component, error) {
	return web.ConfirmPage(web.ConfirmEndSessions()), nil
}

func (a *App) endSessionsPage(ctx context.Context, _ echo.Context, _ *form) (redirect, error) {
	return redirect{"/account", models.Say("Your other sessions were ended.")},
		a.continueSession(ctx, a.Accounts.EndSessions(ctx, actorOf(ctx)))
}
