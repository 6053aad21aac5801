package proxy

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Host tells which workspace a Host header names. There is exactly one way to
// write each: two spellings of one origin would be two cookie jars.
func (p *Proxy) Host(host string) (workspace int64, ok bool) {
	return parseHost(host, p.cfg.AppsDomain)
}

// Origin is the origin of a workspace as the visitor's browser writes it.
func (p *Proxy) Origin(r *http.Request, workspace int64) string {
	return p.scheme(r) + "://" + hostOf(workspace, p.cfg.AppsDomain)
}

func (p *Proxy) scheme(r *http.Request) string {
	if p.cfg.Secure || r.TLS != nil {
		return "https"
	}
	return "http"
}

// framePolicy lets the workspace's own pages and the portal's frame a page.
func (p *Proxy) framePolicy(r *http.Request) string {
	policy := "frame-ancestors 'self'"
	if p.cfg.PortalURL == nil {
		return policy
	}
	if u, err := url.Parse(p.cfg.PortalURL(r)); err == nil && u.Scheme != "" && u.Host != "" {
		policy += " " + u.Scheme + "://" + u.Host
	}
	return policy
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

// canonicalDomain writes the apps domain as browsers will: lower case, and
// without the port that the scheme implies.
func canonicalDomain(domain string, secure bool) string {
	implied := ":80"
	if secure {
		implied = ":443"
	}
	return strings.TrimSuffix(strings.ToLower(domain), implied)
}
