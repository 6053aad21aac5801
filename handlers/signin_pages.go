package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

// signInRoutes need no session.
func (a *App) signInRoutes(g *echo.Group) {
	g.GET("/setup", a.setupPage)
	g.POST("/setup", a.submitSetupPage)
	g.GET("/signin", a.signInPage)
	g.POST("/signin", a.submitSignInPage)
	a.signInStepsRoutes(g)
	g.POST("/language", a.setLanguagePage)
}

func (a *App) setupPage(c echo.Context) error {
	token := c.QueryParam("token")
	if err := a.Accounts.CheckSetupToken(c.Request().Context(), token); err != nil {
		return a.setupClosed(c, err)
	}
	return a.render(c, http.StatusOK, web.SetupPage(web.SetupView{Token: token, Form: formOf(0)}))
}

func (a *App) setupClosed(c echo.Context, err error) error {
	if models.KindOf(err) != models.KindNotFound {
		return err
	}
	return a.render(c, http.StatusNotFound, web.SetupClosedPage())
}

func (a *App) submitSetupPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	f.samePasswords()
	token := f.text("token")
	if token == "" {
		token = c.QueryParam("token")
	}
	in := policies.NewUser{Email: f.text("email"), Name: f.text("name"), Password: f.text("password")}
	var u models.User
	if err = f.errWith(in.Check()); err == nil {
		u, err = a.Accounts.Setup(c.Request().Context(), token, in)
	}
	if models.KindOf(err) == models.KindNotFound {
		return a.setupClosed(c, err)
	}
	if err != nil {
		return a.refused(c, f, err, func(context.Context, echo.Context) (templ.Component, error) {
			return web.SetupPage(web.SetupView{Token: token, Form: f.asSubmitted().Refuse(err)}), nil
		})
	}
	if err := a.beginSession(c.Request().Context(), u, false); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/projects/start")
}

func (a *App) signInPage(c echo.Context) error {
	next := models.LocalPath(c.QueryParam("next"))
	if actorOf(c.Request().Context()).SignedIn() {
		return c.Redirect(http.StatusSeeOther, next)
	}
	return a.render(c, http.StatusOK, web.SignInPage(a.signInView(next)))
}

func (a *App) submitSignInPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	next := models.LocalPath(f.text("next"))
	u, err := a.Accounts.SignIn(c.Request().Context(), c.RealIP(), f.text("email"), f.text("password"), a.devicesOf(c.Request())...)
	switch models.KindOf(err) {
	case models.KindUnauthenticated, models.KindRateLimited:
		a.logSignInRefused(c, f.text("email"), err)
		v := a.signInView(next)
		v.Form = f.asSubmitted().Refuse(err)
		setHeaders(c, err)
		return a.render(c, models.KindOf(err).Status(), web.SignInPage(v))
	}
	if err != nil {
		return err
	}
	to, err := a.afterPassword(c, u, next)
	if err != nil {
		return err
	}
	a.rememberLanguage(c, policies.Actor{User: u}, a.language(c.Request()))
	return c.Redirect(http.StatusSeeOther, to)
}

func (a *App) signOutPage(c echo.Context) error {
	if err := a.sessions.Destroy(c.Request().Context()); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/signin")
}

func (a *App) setLanguagePage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	lang := f.text("lang")
	if lang != models.English && lang != models.Chinese {
		return models.Invalid("lang", "must be en or zh")
	}
	c.SetCookie(&http.Cookie{Name: languageCookie, Value: lang, Path: "/", MaxAge: int((366 * 24 * time.Hour).Seconds()),
		HttpOnly: true, Secure: a.Secure, SameSite: http.SameSiteLaxMode})
	a.rememberLanguage(c, actorOf(c.Request().Context()), lang)
	return c.Redirect(http.StatusSeeOther, models.LocalPath(f.text("next")))
}
