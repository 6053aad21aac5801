package proxy

import (
	"net/http"
	"strconv"
	"strings"
)

func (c Config) origin(r *http.Request, workspace int64) string {
	return c.scheme(r) + "://" + hostOf(workspace, c.AppsDomain)
}

func (c Config) scheme(r *http.Request) string {
	if c.Secure || r.TLS != nil {
		return "https"
	}
	return "http"
}

// framePolicy allows the workspace's own pages and the portal's to frame a page.
func (c Config) framePolicy() string {
	return strings.TrimSpace("frame-ancestors 'self' " + c.PortalURL)
}

func hostOf(workspace int64, domain string) string {
	return "ws-" + strconv.FormatInt(workspace, 10) + "." + domain
}

func parseHost(host, domain string) (int64, bool) {
	label, found := strings.CutSuffix(host, "."+domain)
	if !found {
		return 0, false
	}
	digits, found := strings.CutPrefix(label, "ws-")
	if !found {
		return 0, false
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || id <= 0 || strconv.FormatInt(id, 10) != digits {
		return 0, false
	}
	return id, true
}

// canonicalDomain returns the apps domain as browsers write it: in lower case, and
// without the default port of the scheme.
func canonicalDomain(domain string, secure bool) string {
	implied := ":80"
	if secure {
		implied = ":443"
	}
	return strings.TrimSuffix(strings.ToLower(domain), implied)
}
