package proxy

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"weir/models"
)

// personalToken begins Weir's personal tokens, and no token of a notebook.
const personalToken = "weir_"

// maxCookies bounds how many visit cookies of one request are tried. A sibling
// workspace can plant one for the whole apps domain where TLS does not forbid
// it; that must not lock the visitor out.
const maxCookies = 4

// redeemOpening redeems an opening token and leads on to the notebook.
func (p *Proxy) redeemOpening(w http.ResponseWriter, r *http.Request, id int64) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		p.respondStatus(w, r, http.StatusMethodNotAllowed, errMethod)
		return
	}
	visit, err := p.cfg.Gate.Redeem(r.Context(), id, r.URL.Query().Get("token"))
	if err != nil {
		p.respond(w, r, p.redeemError(id, err))
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name:     p.cookieName(),
		Value:    visit.Secret,
		Path:     "/",
		Expires:  visit.Expires,
		HttpOnly: true,
		Secure:   p.cfg.Secure,
		SameSite: http.SameSiteLaxMode,
	})
	setOwnHeaders(w.Header())
	w.Header().Set("Location", localPath(visit.Path))
	w.WriteHeader(http.StatusSeeOther)
}

// redeemError says the same of every token that is not good, so that a token
// that was used looks like one that never was.
func (p *Proxy) redeemError(id int64, err error) *models.Error {
	switch kind := models.KindOf(err); kind {
	case models.KindInternal, models.KindUnavailable:
		p.cfg.Logger.Error("opening token cannot be redeemed", "workspace", id, "error", err)
		return &models.Error{Kind: kind, Message: errInternal.Message}
	default:
		return errBadOpening
	}
}

// localPath keeps a redirect on this origin.
func localPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}

// credentials are what the visitor shows, in the order in which to try them: a
// personal token alone, which no other site can make a browser send, or else
// the visit cookies.
func (p *Proxy) credentials(r *http.Request) []Credential {
	if token := bearer(r.Header); token != "" {
		return []Credential{{Bearer: token}}
	}
	var out []Credential
	for _, c := range r.CookiesNamed(p.cookieName()) {
		if c.Value != "" && len(out) < maxCookies {
			out = append(out, Credential{Cookie: c.Value})
		}
	}
	return out
}

// bearer is the personal token in a request, or empty.
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

func (p *Proxy) cookieName() string {
	if p.cfg.Secure {
		return hostPrefix + visitCookie
	}
	return visitCookie
}

// refuse turns away who was not admitted. A browser that shows nothing good is
// sent through the portal, whatever the workspace: there its visitor may be
// signed in, so that a bookmark works, and come back with an opening token.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, id int64, err error) {
	if models.KindOf(err) != models.KindUnauthenticated || !isNavigation(r) || p.cfg.PortalURL == nil {
		p.respond(w, r, p.publicError(id, err))
		return
	}
	to := strings.TrimRight(p.cfg.PortalURL(r), "/") + "/workspaces/" + strconv.FormatInt(id, 10) + "/open"
	if page := withoutTokens(r.URL, isPersonal); page != "/" {
		to += "?next=" + url.QueryEscape(page)
	}
	setOwnHeaders(w.Header())
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func isPersonal(token string) bool { return strings.HasPrefix(token, personalToken) }

// withoutTokens writes path and query of u without the token parameters that
// drop picks. All else stays letter for letter.
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
