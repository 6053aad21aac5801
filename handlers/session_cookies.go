package handlers

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
)

// maxSessionCookies and maxCookiePaths bound what a request with planted cookies costs.
const (
	maxSessionCookies = 4
	maxCookiePaths    = 16
)

// ownSession keeps the one session cookie of a request that is valid. Without TLS, which binds
// cookies to their host, a page under a name below the portal's can plant others, also of a session
// of its own: with several valid ones nobody is signed in. The browser is told to remove those that
// the portal cannot have set, so that the person is signed in again with the next request.
func (a *App) ownSession(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, name := c.Request(), SessionCookie(a.Secure)
		var kept []*http.Cookie
		var tokens []string
		for _, cookie := range r.Cookies() {
			if cookie.Name != name {
				kept = append(kept, cookie)
			} else if !slices.Contains(tokens, cookie.Value) {
				tokens = append(tokens, cookie.Value)
			}
		}
		if len(tokens) < 2 {
			return next(c)
		}
		own, err := a.onlySession(r.Context(), tokens)
		if err != nil {
			return err
		}
		r.Header.Del("Cookie")
		for _, cookie := range kept {
			r.AddCookie(cookie)
		}
		if own != "" {
			r.AddCookie(&http.Cookie{Name: name, Value: own})
		}
		for _, planted := range plantedCookies(r, name) {
			planted.MaxAge, planted.Secure = -1, a.Secure
			c.SetCookie(planted)
		}
		return next(c)
	}
}

// onlySession is the one valid token of several; empty if there is none, or more than one.
func (a *App) onlySession(ctx context.Context, tokens []string) (own string, err error) {
	if len(tokens) > maxSessionCookies {
		return "", nil
	}
	for _, token := range tokens {
		_, err := a.Accounts.Session(ctx, policies.HashSecret(token))
		switch {
		case models.KindOf(err) == models.KindNotFound:
		case err != nil:
			return "", err
		case own != "":
			return "", nil
		default:
			own = token
		}
	}
	return own, nil
}

// plantedCookies are where a cookie that comes with a request can have been set, except where the
// portal sets its own: for the host alone, at the path /.
func plantedCookies(r *http.Request, name string) (list []*http.Cookie) {
	domains := []string{""}
	host := (&url.URL{Host: r.Host}).Hostname()
	if _, err := netip.ParseAddr(host); err == nil { // a cookie of an address is of that host alone
		host = ""
	}
	for ; strings.Contains(host, "."); _, host, _ = strings.Cut(host, ".") {
		domains = append(domains, host)
	}
	path := r.URL.EscapedPath()
	paths := []string{"/"}
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			paths = append(paths, path[:i], path[:i+1])
		}
	}
	paths = append(paths, path)
	for _, domain := range domains {
		for _, path := range paths[:min(len(paths), maxCookiePaths)] {
			// An attribute that is not valid would be left out, and the cookie be the portal's own.
			if c := (&http.Cookie{Name: name, Path: path, Domain: domain}); (domain != "" || path != "/") && c.Valid() == nil {
				list = append(list, c)
			}
		}
	}
	return list
}
