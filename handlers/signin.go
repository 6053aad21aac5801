package handlers

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

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

func (a *App) signInView(next string) web.SignInView {
	return web.SignInView{Next: next, Form: formOf(0), Provider: a.providerName(), Passkey: a.passkeyButton(next)}
}

// providerName is the name of the identity provider; empty without one.
func (a *App) providerName() string {
	if a.OIDC == nil {
		return ""
	}
	return a.OIDC.Rules.Name
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

// logSignInRefused writes a line for a refused sign-in, with at most 500 bytes of what
// strangers can choose.
func (a *App) logSignInRefused(c echo.Context, email string, err error) {
	reason := err.Error()
	level := slog.LevelInfo
	if models.KindOf(err) == models.KindRateLimited { // as often as a stranger likes
		level = slog.LevelDebug
	}
	a.Logger.Log(c.Request().Context(), level, "sign-in refused", "email", email[:min(len(email), 500)], "address", c.RealIP(),
		"reason", reason[:min(len(reason), 500)])
}
