package handlers

import (
	"cmp"
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

// linksRoutes are the pages of one-time links. They need no session.
func (a *App) linksRoutes(g *echo.Group) {
	g.GET("/invitation", a.invitationPage)
	g.POST("/invitation", a.acceptInvitationPage)
	g.GET("/password", a.passwordPage)
	g.POST("/password", a.setPasswordPage)
	g.GET("/password/forgot", a.forgotPasswordPage)
	g.POST("/password/forgot", a.submitForgotPasswordPage)
}

// invitationPage shows the invitation of a link, as the reader can accept it.
func (a *App) invitationPage(c echo.Context) error {
	return a.showInvitation(c, http.StatusOK, submittedOr(c, formOf(0)))
}

func (a *App) showInvitation(c echo.Context, status int, f web.Form) error {
	token := c.QueryParam("token")
	ctx := c.Request().Context()
	o, err := a.Invitations.Offer(ctx, actorOf(ctx), token)
	if err != nil {
		return a.invalidLink(c, err)
	}
	if o.Closed != nil {
		status = http.StatusConflict
	}
	return a.render(c, status, web.InvitationPage(web.InvitationView{Invitation: o.InvitationView, Token: token, Form: f, Closed: o.Closed,
		HasAccount: o.HasAccount, Mine: o.Mine, ProviderOnly: o.ProviderOnly, Provider: a.providerName()}))
}

func (a *App) invalidLink(c echo.Context, err error) error {
	if models.KindOf(err) != models.KindNotFound {
		return err
	}
	return a.render(c, http.StatusNotFound, web.InvalidLinkPage())
}

func (a *App) acceptInvitationPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	f.samePasswords()
	var u models.User
	o, err := a.Invitations.Offer(ctx, actorOf(ctx), c.QueryParam("token"))
	in := policies.NewUser{Email: o.Email, Name: f.text("name"), Password: f.text("password")}
	if err == nil {
		err = f.errWith(in.Check())
	}
	if err == nil {
		u, err = a.Invitations.Accept(ctx, actorOf(ctx), c.QueryParam("token"), in)
	}
	switch kind := models.KindOf(err); {
	case err == nil:
	case kind == models.KindNotFound, kind == models.KindInternal, kind == models.KindUnavailable:
		return a.invalidLink(c, err)
	default:
		return a.showInvitation(c, kind.Status(), f.asSubmitted().Refuse(err))
	}
	to := "/"
	if !actorOf(ctx).SignedIn() {
		if to, err = a.afterPassword(c, u, to); err != nil {
			return err
		}
		a.rememberLanguage(c, policies.Actor{User: u}, a.language(c.Request()))
	}
	welcome := models.Say("Welcome to %s.", cmp.Or(o.Project, "Weir"))
	if o.Launches {
		welcome = models.Say("Welcome to %s. Launch your first workspace.", o.Project)
	}
	return a.redirectWithFlash(c, to, welcome)
}

func (a *App) passwordPage(c echo.Context) error {
	return a.showPassword(c, http.StatusOK, formOf(0))
}

func (a *App) showPassword(c echo.Context, status int, f web.Form) error {
	token := c.QueryParam("token")
	u, err := a.Accounts.CheckPasswordLink(c.Request().Context(), token)
	if err != nil {
		return a.invalidLink(c, err)
	}
	return a.render(c, status, web.PasswordPage(web.PasswordView{Form: f, Token: token, Email: u.Email}))
}

// setPasswordPage sets a password by a link, and signs in; a second factor is still needed.
func (a *App) setPasswordPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	f.samePasswords()
	var u models.User
	if err = f.errWith(policies.CheckPassword(f.text("password"))); err == nil {
		u, err = a.Accounts.SetPasswordByLink(ctx, c.QueryParam("token"), f.text("password"))
	}
	switch models.KindOf(err) {
	case models.KindInvalid, models.KindConflict:
		return a.showPassword(c, models.KindOf(err).Status(), f.asSubmitted().Refuse(err))
	}
	if err != nil {
		return a.invalidLink(c, err)
	}
	to, err := a.afterPassword(c, u, "/")
	if err != nil {
		return err
	}
	return a.redirectWithFlash(c, to, models.Say("Password changed. All sessions, tokens and passkeys of this account were revoked."))
}

func (a *App) forgotPasswordPage(c echo.Context) error {
	return a.render(c, http.StatusOK, web.ForgotPasswordPage(web.ForgotView{Form: formOf(0), ByMail: a.Store.Mail}))
}

func (a *App) submitForgotPasswordPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	v := web.ForgotView{Form: f.asSubmitted(), ByMail: a.Store.Mail}
	err = a.Accounts.ForgotPassword(c.Request().Context(), f.text("email"))
	switch kind := models.KindOf(err); {
	case err == nil:
		v.Sent = true
		return a.render(c, http.StatusOK, web.ForgotPasswordPage(v))
	case kind == models.KindInvalid, kind == models.KindRateLimited, kind == models.KindConflict:
		setHeaders(c, err)
		v.Form = v.Form.Refuse(err)
		return a.render(c, kind.Status(), web.ForgotPasswordPage(v))
	}
	return err
}
