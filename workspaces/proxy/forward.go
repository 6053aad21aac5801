package proxy

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// forward forwards the request to the notebook and its response to the visitor.
func (f *flow) forward() {
	rc := http.NewResponseController(f.w)
	rc.EnableFullDuplex() // a notebook may respond to a part of the request
	if !f.extend(rc) {
		panic(http.ErrAbortHandler)
	}

	res, err := f.p.transport.roundTrip(f.ctx, f.request(), f.target)
	switch {
	case err != nil:
		f.fail(err)
	case res.StatusCode == http.StatusSwitchingProtocols:
		f.upgrade(res)
	default:
		f.respond(res)
	}
}

// extend lets the flow last long, as uploads and streams do; not one that was cut.
func (f *flow) extend(rc *http.ResponseController) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	rc.SetReadDeadline(time.Time{})
	rc.SetWriteDeadline(time.Time{})
	return true
}

// request returns the request to the notebook. Its header shares the values of the
// visitor's.
func (f *flow) request() *http.Request {
	in := f.r
	u := *in.URL
	u.Scheme, u.Host = "", ""
	u.RawQuery = dropTokens(cleanQuery(u.RawQuery), isPersonal)
	out := &http.Request{Method: in.Method, URL: &u, Host: in.Host, Header: f.requestHeader(), ContentLength: in.ContentLength}
	if in.ContentLength != 0 && in.Body != nil {
		f.uploads = true
		out.Body = upload{in.Body, f}
	}
	return out
}

func (f *flow) requestHeader() http.Header {
	in := f.r.Header
	h := make(http.Header, len(in)+4)
	for name, values := range in {
		if !isForwarding(name) {
			h[name] = values
		}
	}
	dropHopByHop(h)
	if httpguts.HeaderValuesContainsToken(in["Te"], "trailers") {
		h.Set("Te", "trailers")
	}
	if isWebSocket(f.r) { // another protocol would bypass all checks
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", "websocket")
	}
	if address, _, err := net.SplitHostPort(f.r.RemoteAddr); err == nil {
		h.Set("X-Forwarded-For", address)
	}
	h.Set("X-Forwarded-Host", f.r.Host)
	h.Set("X-Forwarded-Proto", f.p.cfg.scheme(f.r))

	f.p.reserved.stripRequest(h)
	if bearer(h) != "" {
		h.Del("Authorization")
	}
	if f.target.Token != "" {
		h.Set("Authorization", "token "+f.target.Token)
	}
	return h
}

// cleanQuery removes the parameters that are not well-formed, which a notebook could
// parse in another way than the proxy.
func cleanQuery(query string) string {
	if values, err := url.ParseQuery(query); err != nil {
		return values.Encode()
	}
	return query
}

// isForwarding reports whether a header is one by which proxies describe the
// visitor. Those of the visitor cannot be trusted.
func isForwarding(name string) bool {
	switch name {
	case "Forwarded", "X-Real-Ip", "X-Scheme", "X-Client-Ip", "X-Original-Url", "X-Rewrite-Url":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded")
}
