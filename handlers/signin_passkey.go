package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

const passkeySignInPath = "/signin/passkey"

// passkeySignInPage is for those who reload the page that says why a passkey was refused.
func passkeySignInPage(c echo.Context) error { return c.Redirect(http.StatusSeeOther, "/signin") }

// beginPasskeySignIn is for the script of the page, which has the browser sign in.
func (a *App) beginPasskeySignIn(c echo.Context) error {
	ceremony, err := ceremonyOf(a.Accounts.BeginPasskeySignIn())
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, ceremony)
}

func (a *App) submitPasskeySignIn(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx, next := c.Request().Context(), models.LocalPath(f.text("next"))
	u, err := a.Accounts.SignInWithPasskey(ctx, c.RealIP(), policies.PasskeySignIn{Ceremony: f.text("ceremony"),
		Credential: []byte(f.text("credential"))})
	switch kind := models.KindOf(err); kind {
	case models.KindInvalid, models.KindUnauthenticated, models.KindRateLimited, models.KindConflict:
		a.logSignInRefused(c, "", err)
		v := a.signInView(next)
		v.Passkey.Refused = formOf(0).Refuse(err)
		setHeaders(c, err)
		return a.render(c, kind.Status(), web.SignInPage(v))
	}
	if err != nil {
		return err
	}
	to, err := a.afterFirstStep(ctx, u, true, next)
	if err != nil {
		return err
	}
	a.rememberLanguage(c, policies.Actor{User: u}, a.language(c.Request()))
	return c.Redirect(http.StatusSeeOther, to)
}
