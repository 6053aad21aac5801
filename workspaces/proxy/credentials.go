package proxy

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"weir/models"
)

// personalToken is the prefix of Weir's personal tokens, and of no notebook's.
const personalToken = "weir_"

// maxCookies is how many visit cookies of one request are tried. Without TLS, a
// sibling workspace can set one for the whole apps domain, which must not lock the
// visitor out.
const maxCookies = 4

// redeemOpening redeems an opening token and redirects to the notebook, to a page of it or to the
// start page.
func (c Config) redeemOpening(w http.ResponseWriter, r *http.Request, id int64) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		c.respondStatus(w, r, http.StatusMethodNotAllowed, errMethod)
		return
	}
	visit, err := c.Gate.Redeem(r.Context(), id, r.URL.Query().Get("token"))
	if err != nil {
		c.respond(w, r, c.redeemError(id, err))
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name:     c.cookieName(),
		Value:    visit.Secret,
		Path:     "/",
		Expires:  visit.Expires,
		HttpOnly: true,
		Secure:   c.Secure,
		SameSite: http.SameSiteLaxMode,
	})
	setOwnHeaders(w.Header())
	w.Header().Set("Location", models.LocalPath(cmp.Or(r.URL.Query().Get("path"), visit.Path)))
	w.WriteHeader(http.StatusSeeOther)
}

// logoutPath is where notebook servers log out. Their own session is the proxy's; what
// a person wants to end is the visit.
const logoutPath = "/logout"

// leave ends the visit of a browser, and leads to the workspace's page in the portal. A link
// of another site, or of another workspace, does not end it.
func (c Config) leave(w http.ResponseWriter, r *http.Request, id int64) {
	site := r.Header.Get("Sec-Fetch-Site")
	if !sameSite(r, c.origin(r, id)) || site == "same-site" || site == "cross-site" {
		c.respond(w, r, errCrossSite)
		return
	}
	for _, visit := range c.credentials(r) {
		if err := c.Gate.Leave(r.Context(), id, visit.Cookie); err != nil {
			c.respond(w, r, c.publicError(id, err))
			return
		}
	}
	http.SetCookie(w, &http.Cookie{Name: c.cookieName(), Path: "/", MaxAge: -1, HttpOnly: true, Secure: c.Secure,
		SameSite: http.SameSiteLaxMode})
	setOwnHeaders(w.Header())
	to := "/"
	if c.PortalURL != "" {
		to = c.PortalURL + "/workspaces/" + strconv.FormatInt(id, 10)
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// redeemError returns the same error for every invalid token, so that a used token
// is indistinguishable from an unknown one.
func (c Config) redeemError(id int64, err error) *models.Error {
	switch kind := models.KindOf(err); kind {
	case models.KindInternal, models.KindUnavailable:
		c.Logger.Error("opening token cannot be redeemed", "workspace", id, "error", err)
		return &models.Error{Kind: kind, Message: errInternal.Message}
	default:
		return errBadOpening
	}
}

// credentials returns the credentials of a request in the order in which to try
// them: only a personal token, which no other site can make a browser send, or
// else the visit cookies.
func (c Config) credentials(r *http.Request) []Credential {
	if token := bearer(r.Header); token != "" {
		return []Credential{{Bearer: token}}
	}
	var out []Credential
	for _, cookie := range r.CookiesNamed(c.cookieName()) {
		if cookie.Value != "" && len(out) < maxCookies {
			out = append(out, Credential{Cookie: cookie.Value})
		}
	}
	return out
}

// bearer returns the personal token of a request, or "".
func bearer(h http.Header) string {
	for _, value := range h["Authorization"] {
		scheme, token, _ := strings.Cut(value, " ")
		token = strings.TrimSpace(token)
		if (strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "token")) &&
			strings.HasPrefix(token, personalToken) {
			return token
		}
	}
	return ""
}

func (c Config) cookieName() string {
	if c.Secure {
		return hostPrefix + visitCookie
	}
	return visitCookie
}

// refuse responds to a visitor who was not admitted. A browser without a valid
// credential is redirected to the portal, whatever the workspace: if its user is
// signed in there, it returns with an opening token, so that bookmarks work.
func (c Config) refuse(w http.ResponseWriter, r *http.Request, id int64, err error) {
	if models.KindOf(err) != models.KindUnauthenticated || !isNavigation(r) || c.PortalURL == "" {
		c.respond(w, r, c.publicError(id, err))
		return
	}
	to := c.PortalURL + "/workspaces/" + strconv.FormatInt(id, 10) + "/open"
	if page := withoutTokens(r.URL, isPersonal); page != "/" && models.IsPagePath(page) {
		to += "?path=" + url.QueryEscape(page)
	}
	setOwnHeaders(w.Header())
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func isPersonal(token string) bool { return strings.HasPrefix(token, personalToken) }

// withoutTokens returns path and query of u without the token parameters for which
// drop is true. The rest is unchanged.
func withoutTokens(u *url.URL, drop func(token string) bool) string {
	out := cmp.Or(u.EscapedPath(), "/")
	if query := dropTokens(u.RawQuery, drop); query != "" {
		out += "?" + query
	}
	return out
}

func dropTokens(query string, drop func(token string) bool) string {
	if !strings.Contains(query, "=") {
		return query
	}
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		name, err1 := url.QueryUnescape(key)
		token, err2 := url.QueryUnescape(value)
		if err1 == nil && err2 == nil && name == "token" && drop(token) {
			continue
		}
		kept = append(kept, pair)
	}
	return strings.Join(kept, "&")
}
