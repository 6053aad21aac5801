package handlers

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

const (
	oidcPath         = "/signin/oidc"
	oidcCallbackPath = oidcPath + "/callback"
	signInTimeout    = 10 * time.Minute // for signing in at the provider
)

func (a *App) oidcRoutes(g *echo.Group) {
	if a.OIDC != nil {
		g.GET(oidcPath, a.startOIDCPage)
		g.GET(oidcCallbackPath, a.oidcCallbackPage)
	}
}

// startOIDCPage redirects to the identity provider and sets the cookie of the
// sign-in.
func (a *App) startOIDCPage(c echo.Context) error {
	next := models.LocalPath(c.QueryParam("next"))
	if actorOf(c.Request().Context()).SignedIn() {
		return c.Redirect(http.StatusSeeOther, next)
	}
	// The provider redirects to one origin only, which needs the cookie.
	if c.QueryParam("here") == "" && !strings.HasSuffix(a.OIDC.Origin, "://"+c.Request().Host) {
		return c.Redirect(http.StatusSeeOther, a.OIDC.Origin+oidcPath+"?"+url.Values{"next": {next}, "here": {"1"}}.Encode())
	}
	attempt := newAttempt(a.Store.Now().Add(signInTimeout), next)
	to, err := a.OIDC.Provider.AuthCodeURL(c.Request().Context(), attempt.state(a.OIDC.Origin))
	if err != nil {
		return a.signInFailed(c, next, err)
	}
	a.setSignInCookie(c, attempt.cookie(), signInTimeout)
	return c.Redirect(http.StatusSeeOther, to)
}

func (a *App) setSignInCookie(c echo.Context, value string, age time.Duration) {
	c.SetCookie(&http.Cookie{Name: SignInCookie(a.Secure), Value: value, Path: "/", MaxAge: int(age.Seconds()),
		HttpOnly: true, Secure: a.Secure, SameSite: http.SameSiteLaxMode})
}

// oidcCallbackPage takes a browser back from the provider. Only the one that
// left is let in, once.
func (a *App) oidcCallbackPage(c echo.Context) error {
	var attempt signInAttempt
	if cookie, err := c.Cookie(SignInCookie(a.Secure)); err == nil {
		attempt = readAttempt(cookie.Value)
	}
	a.setSignInCookie(c, "", -time.Second)
	next, state := models.LocalPath(attempt.next), attempt.state(a.OIDC.Origin)
	if attempt.secret == "" || !hmac.Equal([]byte(state.State), []byte(c.QueryParam("state"))) || !a.Store.Now().Before(attempt.until) {
		return a.signInFailed(c, next, models.Forbidden("This sign-in was started in another browser, is already complete, or took longer than %d minutes. Sign in again.",
			int64(signInTimeout/time.Minute)))
	}
	if code := c.QueryParam("error"); code != "" {
		return a.signInFailed(c, next, a.providerError(code))
	}
	as, err := a.OIDC.Provider.Redeem(c.Request().Context(), state, c.QueryParam("code"), c.QueryParam("iss"))
	if err != nil {
		return a.signInFailed(c, next, err)
	}
	if err := a.completeSignIn(c, as, next); err != nil {
		return a.signInFailed(c, next, err)
	}
	return c.Redirect(http.StatusSeeOther, next)
}

// completeSignIn begins a session for an assertion. What there is to say about it stands
// on the page at next.
func (a *App) completeSignIn(c echo.Context, as policies.Assertion, next string) error {
	ctx := c.Request().Context()
	in, err := a.Accounts.SignInWithProvider(ctx, a.OIDC.Rules, as)
	if err != nil {
		return err
	}
	groups, err := a.Projects.SyncGroups(ctx, in.Identity, a.OIDC.Rules.ProjectRoles(as.Groups))
	if err != nil {
		return err
	}
	if err := a.beginSession(ctx, in.User, true); err != nil {
		return err
	}
	a.sessions.SetDeadline(ctx, a.Store.Now().Add(min(a.SessionLifetime, a.OIDC.SessionMax)))
	a.rememberLanguage(c, policies.Actor{User: in.User}, a.language(c.Request()))
	var message models.Text
	for _, note := range append(in.Notes, groups.Notes...) {
		a.Logger.WarnContext(ctx, "sign-in by the provider", "account", in.User.Email, "note", note.String())
		if message.Empty() {
			message = note
		} else {
			message = models.Say("%s %s", message, note)
		}
	}
	a.flash(ctx, next, "warn", message)
	return nil
}

// providerError converts an error code of the provider.
func (a *App) providerError(code string) error {
	name := a.providerName()
	switch code {
	case "access_denied":
		return models.Forbidden("%s denied the sign-in.", name)
	case "temporarily_unavailable", "server_error":
		return models.Unavailable(nil, "Sign-in with %s is temporarily unavailable. Try again in a moment.", name)
	}
	if len(code) > 40 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz_") != "" {
		code = "?"
	}
	return models.Forbidden("%s rejected the sign-in (%s). Ask an administrator to check the sign-in settings.", name, code)
}

// signInFailed shows the sign-in page with an error.
func (a *App) signInFailed(c echo.Context, next string, err error) error {
	kind := models.KindOf(err)
	if kind != models.KindForbidden && kind != models.KindUnavailable {
		return err
	}
	a.logSignInRefused(c, "", err)
	v := a.signInView(next)
	v.Refused = v.Refused.Refuse(err)
	// Whoever loads the page again, in the other language, begins anew.
	r := c.Request().WithContext(c.Request().Context())
	r.URL = &url.URL{Path: "/signin", RawQuery: url.Values{"next": {next}}.Encode()}
	c.SetRequest(r)
	return a.render(c, kind.Status(), web.SignInPage(v))
}

// signInAttempt is the state of a sign-in with the provider, stored only in its cookie. The
// state, nonce and verifier derive from the whole cookie, so that no part can be
// changed and no server has to store it.
type signInAttempt struct {
	secret string
	until  time.Time
	next   string // the page to go to afterwards
}

const maxNextBytes = 1500 // bytes; browsers keep cookies of 4096

func newAttempt(until time.Time, next string) signInAttempt {
	if len(next) > maxNextBytes {
		next = "/"
	}
	return signInAttempt{policies.NewSecret(), until, next}
}

// cookie is the value of the cookie.
func (t signInAttempt) cookie() string {
	return t.secret + "." + strconv.FormatInt(t.until.Unix(), 10) + "." + base64.RawURLEncoding.EncodeToString([]byte(t.next))
}

// readAttempt parses the cookie. The secret is empty if it is invalid.
func readAttempt(cookie string) signInAttempt {
	parts := strings.Split(cookie, ".")
	if len(parts) != 3 || len(parts[0]) < 43 {
		return signInAttempt{}
	}
	until, err := strconv.ParseInt(parts[1], 10, 64)
	next, nextErr := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || nextErr != nil {
		return signInAttempt{}
	}
	return signInAttempt{parts[0], time.Unix(until, 0), string(next)}
}

// state is the state for the request to the provider.
func (t signInAttempt) state(origin string) policies.SignInState {
	derive := func(what string) string {
		mac := hmac.New(sha256.New, []byte(t.secret))
		mac.Write([]byte(what + " " + t.cookie()))
		return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	return policies.SignInState{Redirect: origin + oidcCallbackPath, State: derive("state"), Nonce: derive("nonce"),
		Verifier: derive("verifier")}
}
