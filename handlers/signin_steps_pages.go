package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

const (
	codeStepPath    = "/signin/second-factor"
	setupStepPath   = codeStepPath + "/setup"
	confirmStepPath = codeStepPath + "/confirm"
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

// afterPassword is afterFirstStep of a user whose password is right, whom the browser is known for
// from now on.
func (a *App) afterPassword(c echo.Context, u models.User, next string) (to string, err error) {
	device, err := a.Accounts.Device(u)
	if err != nil {
		return "", err
	}
	c.SetCookie(&http.Cookie{Name: DeviceCookie(a.Secure), Value: device, Path: "/", MaxAge: int(deviceRemembered.Seconds()),
		HttpOnly: true, Secure: a.Secure, SameSite: http.SameSiteLaxMode})
	return a.afterFirstStep(c.Request().Context(), u, false, next)
}

// deviceRemembered is for how long a browser is known in which nobody signs in again.
const deviceRemembered = 180 * 24 * time.Hour

// devicesOf are what the browser keeps of accounts in which somebody has signed in.
func (a *App) devicesOf(r *http.Request) (list []string) {
	for _, c := range r.CookiesNamed(DeviceCookie(a.Secure)) {
		list = append(list, c.Value)
	}
	return list
}

// afterFirstStep begins the session of a user whose password is right, or who has used a
// passkey, or the next step of signing in. It returns the page to go to.
func (a *App) afterFirstStep(ctx context.Context, u models.User, byPasskey bool, next string) (to string, err error) {
	step, pending, err := a.Accounts.NextStep(ctx, u, byPasskey)
	if err != nil {
		return "", err
	}
	if step == policies.SignedIn {
		return next, a.beginSession(ctx, u, false)
	}
	if err := a.sessions.RenewToken(ctx); err != nil {
		return "", err
	}
	b, err := json.Marshal(pending)
	if err != nil {
		return "", err
	}
	a.sessions.Remove(ctx, sessionUser)
	a.sessions.Put(ctx, sessionPending, string(b))
	a.sessions.Put(ctx, sessionNext, next)
	a.sessions.SetDeadline(ctx, pending.Until)
	if step == policies.EnrollmentStep {
		return setupStepPath, nil
	}
	return codeStepPath, nil
}

// pendingSignIn is the sign-in of the session that waits for its next step; the zero value
// if there is none.
func (a *App) pendingSignIn(ctx context.Context) (p policies.PendingSignIn) {
	if err := json.Unmarshal([]byte(a.sessions.GetString(ctx, sessionPending)), &p); err != nil {
		return policies.PendingSignIn{}
	}
	return p
}

// afterSignIn is the page to go to when the sign-in of the session is complete.
func (a *App) afterSignIn(ctx context.Context) string {
	return models.LocalPath(a.sessions.GetString(ctx, sessionNext))
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
