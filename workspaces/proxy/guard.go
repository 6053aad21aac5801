package proxy

import (
	"net/http"
	"strings"
)

var csrf http.CrossOriginProtection

// sameSite reports whether a request with a cookie may come from the notebook's own
// pages. The notebook does not check this itself, because requests with the token
// that the proxy adds are exempt.
//
// Sibling workspaces are "same-site" for a browser, so SameSite cookies do not
// separate them.
func sameSite(r *http.Request, own string) bool {
	origins := r.Header["Origin"]
	site := r.Header.Get("Sec-Fetch-Site")
	ownOrigin := len(origins) == 1 && origins[0] == own

	switch {
	case isWebSocket(r):
		return ownOrigin && (site == "" || site == "same-origin")
	case isNavigation(r):
		return true // following a link; the site with the link cannot read the response
	case len(origins) > 0 && !ownOrigin:
		return false
	case site == "same-site" || site == "cross-site":
		return false
	default:
		return csrf.Check(r) == nil
	}
}

// isWebSocket may also report requests that the notebook does not upgrade. The
// Upgrade header of all others is removed.
func isWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// isNavigation reports whether a browser navigates to a page. Without
// Sec-Fetch-Mode, it depends on whether the client accepts HTML.
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
