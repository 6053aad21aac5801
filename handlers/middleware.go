package handlers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"weir/models"
	"weir/policies"
	"weir/web"
)

// compress compresses responses, except event streams, which hijack the connection,
// files, and responses with secrets.
var compress = middleware.GzipWithConfig(middleware.GzipConfig{Level: 1, MinLength: 4 << 10,
	Skipper: func(c echo.Context) bool {
		return c.Path() == eventsPath || isStream(c) || strings.HasSuffix(c.Path(), "/completions") || hasSecrets(c.Path())
	}})

// observe logs and counts every request.
func (a *App) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		err := next(c)
		if err != nil {
			c.Error(err)
		}
		r, status := c.Request(), c.Response().Status
		route := c.Path()
		if route == "" {
			route = "other"
		}
		a.metrics.Request(r.Method, route, status, time.Since(start))
		a.Logger.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "host", r.Host,
			"status", status, "ms", time.Since(start).Milliseconds())
		return nil
	}
}

// recoverPanics turns a panic into an internal error. http.ErrAbortHandler is
// the standard way to cut a response off and passes through.
func (a *App) recoverPanics(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch r := recover(); r {
			case nil:
			case http.ErrAbortHandler:
				panic(r)
			default:
				a.Logger.ErrorContext(c.Request().Context(), "panic", "value", fmt.Sprint(r), "stack", string(debug.Stack()))
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		return next(c)
	}
}

// routeByHost passes requests to workspaces' origins to the proxy. Other hosts with the
// prefix of a workspace are refused, so that no other spelling of its host serves the
// portal, and so are hosts that are not the portal's. Health checks work under every other
// host: a load balancer's has one of its own. Who sends the request is recorded for the audit log.
func (a *App) routeByHost(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		r = r.WithContext(policies.WithOrigin(r.Context(), policies.Origin{Address: c.RealIP(), UserAgent: r.UserAgent()}))
		c.SetRequest(r)
		if _, ok := a.Proxy.Host(r.Host); ok {
			c.SetPath("workspace")
			a.Proxy.ServeHTTP(c.Response(), r)
			return nil
		}
		if strings.HasPrefix(strings.ToLower(r.Host), "ws-") {
			return models.NotFound("workspace")
		}
		if !a.servesHost(r.Host) && r.URL.Path != healthPath && r.URL.Path != readyPath {
			return echo.NewHTTPError(http.StatusMisdirectedRequest)
		}
		return next(c)
	}
}

// servesHost reports whether the portal is served under a host, at any port. A name of
// somebody else could be made to resolve to this machine, and its pages would then be of
// the portal's origin; addresses and localhost are nobody's.
func (a *App) servesHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	return strings.EqualFold(name, "localhost") || slices.ContainsFunc(a.Hosts, func(own string) bool { return strings.EqualFold(name, own) })
}

const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"frame-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (a *App) secureHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY")
		if a.Secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if strings.HasPrefix(c.Request().URL.Path, "/static/") {
			h.Set("Cross-Origin-Resource-Policy", "cross-origin") // a stopped workspace's page, on its own origin, uses them
		} else {
			h.Set("Cache-Control", "no-store")
		}
		return next(c)
	}
}

// crossOrigin refuses cross-site changes.
func (a *App) crossOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	protection := http.NewCrossOriginProtection()
	return func(c echo.Context) error {
		if err := protection.Check(c.Request()); err != nil {
			e := models.Forbidden("Cross-site requests are not allowed.")
			e.Err = err
			return e
		}
		return next(c)
	}
}

// setEventCursor notes where the changes stood before anything was read for the
// page.
func (a *App) setEventCursor(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), cursorKey{}, a.events.Cursor())))
		return next(c)
	}
}

// authenticate identifies the actor by the access token, or else the session.
// Permissions are read at every request.
func (a *App) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		actor, err := a.identify(c.Request())
		if err != nil {
			return err
		}
		c.SetRequest(c.Request().WithContext(withActor(c.Request().Context(), actor)))
		return next(c)
	}
}

func (a *App) identify(r *http.Request) (policies.Actor, error) {
	if workspace := insideOf(r.Context()); workspace != 0 {
		return a.Workspaces.ActorInside(r.Context(), a.Accounts, workspace)
	}
	if _, password, ok := r.BasicAuth(); ok && r.URL.Path == feedPath {
		return a.Accounts.ActorByToken(r.Context(), password)
	}
	if header := r.Header.Get("Authorization"); header != "" {
		return a.Accounts.ActorByToken(r.Context(), bearer(header))
	}
	return a.bySession(r.Context())
}

// bearer reads "Bearer SECRET" and "token SECRET".
func bearer(header string) string {
	scheme, secret, _ := strings.Cut(header, " ")
	if strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "token") {
		return strings.TrimSpace(secret)
	}
	return ""
}

// requireSignIn redirects unauthenticated browsers to the sign-in page, and back
// afterwards.
func (a *App) requireSignIn(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if actorOf(c.Request().Context()).SignedIn() {
			return next(c)
		}
		r := c.Request()
		if r.Method == http.MethodGet && r.URL.Path != eventsPath {
			return c.Redirect(http.StatusSeeOther, "/signin?next="+url.QueryEscape(r.URL.RequestURI()))
		}
		return &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("Sign in to continue.")}
	}
}

// clientAddress is the peer's address, since a header can contain any. Behind trusted
// proxies it is the last address in X-Forwarded-For that is not one of them.
func clientAddress(trusted []netip.Prefix) echo.IPExtractor {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range trusted {
		options = append(options, echo.TrustIPRange(&net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

// methodsAt lists the methods of the routes that match a path.
func (a *App) methodsAt(path string) []string {
	c := a.echo.AcquireContext()
	defer a.echo.ReleaseContext(c)
	var allowed []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut} {
		c.Reset(nil, nil)
		a.echo.Router().Find(method, path, c)
		if slices.Contains(a.routes[c.Path()], method) {
			allowed = append(allowed, method)
			if method == http.MethodGet && path != eventsPath {
				allowed = append(allowed, http.MethodHead)
			}
		}
	}
	return allowed
}

// wrongMethod turns “not found” into “method not allowed” at a path that has other
// methods. Groups with middleware have routes of their own for what is not found, so
// that echo never says it.
func (a *App) wrongMethod(err error, c echo.Context) error {
	if !errors.Is(err, echo.ErrNotFound) {
		return err
	}
	allowed := a.methodsAt(c.Request().URL.Path)
	if len(allowed) == 0 {
		return err
	}
	c.Response().Header().Set("Allow", strings.Join(allowed, ", "))
	return echo.ErrMethodNotAllowed
}

// handleError responds with an error page or a problem, and logs internal errors.
func (a *App) handleError(err error, c echo.Context) {
	err = a.wrongMethod(err, c)
	r, status := c.Request(), statusFor(err)
	if status >= 500 && r.Context().Err() == nil {
		a.Logger.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	switch {
	case c.Response().Committed:
	case strings.HasPrefix(r.URL.Path, "/api/") && r.URL.Path != "/api/docs":
		p := problemOf(err)
		if status == http.StatusUnauthorized && r.URL.Path == feedPath {
			p.header = feedChallenge
		}
		a.logged(r, p.write(c.Response()))
	default:
		setHeaders(c, err)
		a.logged(r, a.render(c, status, web.ErrorPage(web.ErrorView{Status: status, Err: publicError(err)})))
	}
}

// Limits of request bodies. An imported table is larger with its encoding.
var (
	defaultBodyLimit = bodyLimit("1M", func(c echo.Context) bool { return !isImport(c) && !isInfer(c) && !isEmbeddings(c) && !isStream(c) })
	importBodyLimit  = bodyLimit("4M", func(c echo.Context) bool { return isImport(c) || isEmbeddings(c) || isInfer(c) && !isBinary(c) })
	binaryBodyLimit  = bodyLimit("16M", isBinary)
)

// bodyLimit refuses larger bodies, in millions of bytes, where it applies.
func bodyLimit(limit string, applies func(echo.Context) bool) echo.MiddlewareFunc {
	limited := middleware.BodyLimitWithConfig(middleware.BodyLimitConfig{Limit: limit,
		Skipper: func(c echo.Context) bool { return !applies(c) }})
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		handler := limited(next)
		return func(c echo.Context) error {
			err := handler(c)
			if errors.Is(err, echo.ErrStatusRequestEntityTooLarge) {
				err = echo.NewHTTPError(http.StatusRequestEntityTooLarge, strings.TrimSuffix(limit, "M")+" MB")
			}
			return err
		}
	}
}

func isImport(c echo.Context) bool { return strings.HasSuffix(c.Path(), "/import") }
