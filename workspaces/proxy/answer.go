package proxy

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// respond sends the response to the visitor.
func (f *flow) respond(res *http.Response) {
	defer res.Body.Close()
	h := f.w.Header()
	dropHopByHop(res.Header)
	f.clean(res.Header)
	maps.Copy(h, res.Header)
	maps.DeleteFunc(res.Trailer, isFiltered)
	if len(res.Trailer) > 0 {
		h.Set("Trailer", strings.Join(slices.Sorted(maps.Keys(res.Trailer)), ", "))
	}
	f.closeUnlessReceived()
	f.w.WriteHeader(res.StatusCode)
	if err := f.copyBody(res.Body.(*exchange)); err != nil {
		f.cut() // the visitor must not take a part for the whole
		panic(http.ErrAbortHandler)
	}
	maps.DeleteFunc(res.Trailer, isFiltered)
	if len(res.Trailer) > 0 || f.receiving() { // trailers need chunks; Close waits a moment for the rest of an upload
		http.NewResponseController(f.w).Flush()
	}
	for name, values := range res.Trailer {
		delete(h, name) // was sent with the header
		h[http.TrailerPrefix+name] = values
	}
}

// isFiltered reports whether a field is one that clean filters. Proxies may add
// trailers to the header.
func isFiltered(name string, _ []string) bool {
	switch name {
	case "Set-Cookie", "Location", "Clear-Site-Data", "Alt-Svc", "Content-Security-Policy", "Content-Security-Policy-Report-Only",
		"X-Content-Type-Options", "Origin-Agent-Cluster", "Cross-Origin-Resource-Policy", "Referrer-Policy":
		return true
	}
	return false
}

// copyBody sends what has been received before it waits for more.
func (f *flow) copyBody(from *exchange) error {
	buf := copyBuffers.Get()
	defer copyBuffers.Put(buf)
	rc := http.NewResponseController(f.w)
	for {
		if from.waits() {
			if err := f.checkLease(); err != nil {
				return err
			}
			rc.Flush()
		}
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := f.write(f.w, buf[:n]); err != nil {
				return err
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// clean makes the header of the notebook's response safe for the visitor.
func (f *flow) clean(h http.Header) {
	f.p.reserved.filterResponse(h)
	if location := h.Get("Location"); location != "" {
		h.Set("Location", f.redirect(location))
	}
	h.Del("Clear-Site-Data") // clears cookies of the whole domain, siblings and portal with it
	h.Del("Alt-Svc")         // would make browsers bypass the proxy

	// A second policy can only restrict the notebook's own.
	h.Add("Content-Security-Policy", f.p.cfg.framePolicy())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Origin-Agent-Cluster", "?1") // a separate process from sibling workspaces
	setDefault(h, "Cross-Origin-Resource-Policy", "same-origin")
	setDefault(h, "Referrer-Policy", "same-origin")
}

func setDefault(h http.Header, name, value string) {
	if h.Get(name) == "" {
		h.Set(name, value)
	}
}

// redirect removes the notebook's token from a redirect, and makes one to its own
// origin relative, because the notebook cannot know the visitor's scheme.
func (f *flow) redirect(location string) string {
	secret := f.target.Token
	if u, err := url.Parse(location); err == nil {
		u.RawQuery = dropTokens(u.RawQuery, func(token string) bool { return secret != "" && token == secret })
		if u.Host == f.r.Host {
			u.Scheme, u.Host = "", ""
			if strings.HasPrefix(u.Path, "//") || u.Path == "" {
				u.Path, u.RawPath = "/"+strings.TrimLeft(u.Path, "/"), ""
			}
		}
		location = u.String()
	}
	if secret != "" {
		location = strings.ReplaceAll(location, secret, "") // nested in another parameter
	}
	return location
}

// fail responds when the notebook does not.
func (f *flow) fail(err error) {
	f.closeUnlessReceived()
	switch {
	case f.stalled.Load():
		f.p.cfg.respondStatus(f.w, f.r, http.StatusRequestTimeout, errStalled)
	case errors.Is(err, context.Canceled): // the visitor left, or the flow was cut
		panic(http.ErrAbortHandler)
	default:
		f.p.cfg.Logger.Warn("workspace does not answer", "workspace", f.workspace, "method", f.r.Method, "path", f.r.URL.Path, "error", err)
		f.p.cfg.respondStatus(f.w, f.r, http.StatusBadGateway, errNoAnswer)
	}
}

// dropHopByHop removes the headers that are about one connection.
func dropHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		delete(h, name)
	}
}
