package proxy

import (
	"net/http"
	"strings"
)

// sameSite reports whether a request that carries a cookie may have been meant
// by the notebook's own pages. The notebook itself does not check: to it, the
// token that the proxy adds stands for a program that needs no such check.
//
// Sibling workspaces are "same-site" to a browser, so SameSite cookies do not
// keep them apart; this does.
func (p *Proxy) sameSite(r *http.Request, own string) bool {
	origins := r.Header["Origin"]
	site := r.Header.Get("Sec-Fetch-Site")
	ownOrigin := len(origins) == 1 && origins[0] == own

	switch {
	case isWebSocket(r):
		return ownOrigin && (site == "" || site == "same-origin")
	case isNavigation(r):
		return true // following a link; the answer cannot be read by who set it
	case len(origins) > 0 && !ownOrigin:
		return false
	case site == "same-site" || site == "cross-site":
		return false
	default:
		return p.csrf.Check(r) == nil
	}
}

// isWebSocket is broader than what will be upgraded, and everything that asks
// for another protocol loses its Upgrade header on the way.
func isWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// isNavigation reports whether a browser is going to a page. Browsers that do
// not say, and programs that imitate them, are taken by what they accept.
func isNavigation(r *http.Request) bool {
	if !isRead(r) || isWebSocket(r) {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return len(r.Header["Origin"]) == 0 && acceptsHTML(r)
}

func isRead(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

func acceptsHTML(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}
