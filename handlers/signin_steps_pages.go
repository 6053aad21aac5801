package handlers

import (
	"context"
	"net/http"
	"net/url"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

// signInStepsRoutes are signing in with a passkey, and the steps after the password. They
// need no session but that of the pending sign-in.
func (a *App) signInStepsRoutes(g *echo.Group) {
	g.GET(passkeySignInPath, passkeySignInPage)
	g.GET(passkeySignInPath+"/ceremony", a.beginPasskeySignIn)
	g.POST(passkeySignInPath, a.submitPasskeySignIn)
	g.GET(codeStepPath, a.step(policies.CodeStep, a.codeStepPage))
	g.POST(codeStepPath, a.submitCodeStepPage)
	g.GET(setupStepPath, a.step(policies.EnrollmentStep, a.setupStepPage))
	g.POST(setupStepPath, a.submitSetupStepPage)
	g.GET(confirmStepPath, a.step(policies.EnrollmentStep, a.confirmStepPage))
	g.POST(confirmStepPath, a.submitConfirmStepPage)
}

// step shows the page of a step, to those whose sign-in waits for it.
func (a *App) step(step policies.SignInStep, build pageFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx := c.Request().Context()
		if err := a.Accounts.CheckPending(ctx, a.pendingSignIn(ctx), step); err != nil {
			return a.stepRefused(c, &form{}, err, nil)
		}
		if err := a.showPage(c, http.StatusOK, build); err != nil {
			return a.stepRefused(c, &form{}, err, nil)
		}
		return nil
	}
}

// stepRefused shows a step again with the reason. If there is no pending sign-in for it any
// more, it begins with the password; if an authenticator app was not confirmed in time, with
// a new one.
func (a *App) stepRefused(c echo.Context, f *form, err error, build pageFunc) error {
	ctx := c.Request().Context()
	next := a.afterSignIn(ctx)
	switch models.KindOf(err) {
	case models.KindUnauthenticated:
		if actorOf(ctx).SignedIn() {
			return c.Redirect(http.StatusSeeOther, next)
		}
		return c.Redirect(http.StatusSeeOther, "/signin?next="+url.QueryEscape(next))
	case models.KindConflict:
		return c.Redirect(http.StatusSeeOther, setupStepPath)
	case models.KindInvalid, models.KindRateLimited:
		a.logSignInRefused(c, "", err)
	}
	return a.refused(c, f, err, build)
}

func (a *App) codeStepPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	return web.CodeStepPage(web.CodeStepView{Form: submittedOr(c, formOf(0)), Recovery: c.QueryParam("with") == "recovery-code",
		Passkey: a.passkeyButton(a.afterSignIn(ctx))}), nil
}

func (a *App) submitCodeStepPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	next := a.afterSignIn(ctx)
	u, err := a.Accounts.SignInWithCode(ctx, a.pendingSignIn(ctx), f.text("code"))
	if err == nil {
		err = a.beginSession(ctx, u, false)
	}
	if err != nil {
		return a.stepRefused(c, f, err, a.codeStepPage)
	}
	return c.Redirect(http.StatusSeeOther, next)
}

func (a *App) setupStepPage(context.Context, echo.Context) (templ.Component, error) {
	return web.SetupStepPage(), nil
}

func (a *App) submitSetupStepPage(c echo.Context) error {
	ctx := c.Request().Context()
	if _, err := a.Accounts.BeginRequiredSecondFactor(ctx, a.pendingSignIn(ctx)); err != nil {
		return a.stepRefused(c, &form{}, err, nil)
	}
	return c.Redirect(http.StatusSeeOther, confirmStepPath)
}

func (a *App) confirmStepPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	e, err := a.Accounts.RequiredEnrollment(ctx, a.pendingSignIn(ctx))
	if err != nil {
		return nil, err
	}
	return enrollmentPage(c, e, confirmStepPath, setupStepPath)
}

func (a *App) submitConfirmStepPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	next := a.afterSignIn(ctx)
	u, codes, err := a.Accounts.ConfirmRequiredSecondFactor(ctx, a.pendingSignIn(ctx), f.text("code"))
	if err == nil {
		err = a.beginSession(ctx, u, false)
	}
	if err != nil {
		return a.stepRefused(c, f, err, a.confirmStepPage)
	}
	return a.render(c, http.StatusOK, web.RecoveryCodesPage(web.RecoveryCodesView{Codes: codes, Next: next}))
}
