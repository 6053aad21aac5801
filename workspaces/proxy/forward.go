package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
)

// forward takes the request to the notebook and the answer back.
func (f *flow) forward() {
	rc := http.NewResponseController(f.w)
	rc.SetReadDeadline(time.Time{}) // an upload or a stream may take its time
	rc.SetWriteDeadline(time.Time{})

	reverse := httputil.ReverseProxy{
		Rewrite:        f.rewrite,
		ModifyResponse: f.modify,
		ErrorHandler:   f.fail,
		Transport:      f.p.transport,
		BufferPool:     copyBuffers,
		FlushInterval:  -1, // what a notebook writes, its visitor sees
		ErrorLog:       f.p.errorLog,
	}
	ctx := withEndpoint(f.ctx, f.target.Endpoint)
	r := f.r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = upload{r.Body, f}
	}
	reverse.ServeHTTP(responseWriter{f.w, f}, r)
}

// rewrite makes the notebook's request out of the visitor's.
func (f *flow) rewrite(pr *httputil.ProxyRequest) {
	out := pr.Out
	out.URL.Scheme = "http"
	out.URL.Host = f.target.poolHost()
	out.URL.RawQuery = dropTokens(out.URL.RawQuery, isPersonal)

	for name := range out.Header {
		if isForwarding(name) {
			out.Header.Del(name)
		}
	}
	pr.SetXForwarded()
	out.Header.Set("X-Forwarded-Proto", f.p.scheme(pr.In))

	f.p.reserved.stripRequest(out.Header)
	if bearer(out.Header) != "" {
		out.Header.Del("Authorization")
	}
	if f.target.Token != "" {
		out.Header.Set("Authorization", "token "+f.target.Token)
	}
	if !isWebSocket(pr.In) {
		out.Header.Del("Upgrade") // another protocol would escape all of this
		out.Header.Del("Connection")
	}
}

// isForwarding recognises the headers by which proxies describe the visitor.
// The visitor's own cannot be trusted.
func isForwarding(name string) bool {
	switch name {
	case "Forwarded", "X-Real-Ip", "X-Scheme", "X-Client-Ip", "X-Original-Url", "X-Rewrite-Url":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded")
}

// modify makes the visitor's answer out of the notebook's.
func (f *flow) modify(res *http.Response) error {
	h := res.Header
	f.p.reserved.filterResponse(h)
	if location := h.Get("Location"); location != "" {
		h.Set("Location", f.redirect(location))
	}
	h.Del("Clear-Site-Data") // clears cookies of the whole domain, siblings and portal with it
	h.Del("Alt-Svc")         // would lead the origin past the proxy

	// A second policy can only narrow the notebook's own.
	h.Add("Content-Security-Policy", f.p.framePolicy(f.r))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Origin-Agent-Cluster", "?1") // a process apart from sibling workspaces
	setDefault(h, "Cross-Origin-Resource-Policy", "same-origin")
	setDefault(h, "Referrer-Policy", "same-origin")

	if body, ok := res.Body.(io.ReadWriteCloser); ok && res.StatusCode == http.StatusSwitchingProtocols {
		res.Body = tunnel{body, f}
		return f.closeOnCut(body)
	}
	return nil
}

func setDefault(h http.Header, name, value string) {
	if h.Get(name) == "" {
		h.Set(name, value)
	}
}

// redirect keeps a notebook's redirect free of its secret, and on the origin
// and scheme by which the visitor came: the notebook does not know of TLS.
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

// fail answers when the notebook does not.
func (f *flow) fail(w http.ResponseWriter, _ *http.Request, err error) {
	if f.ctx.Err() != nil { // the visitor left, or was cut off
		panic(http.ErrAbortHandler)
	}
	level := slog.LevelWarn
	if errors.Is(err, context.Canceled) {
		level = slog.LevelDebug
	}
	f.p.cfg.Logger.Log(f.r.Context(), level, "workspace does not answer",
		"workspace", f.workspace, "method", f.r.Method, "path", f.r.URL.Path, "error", err)
	f.p.respondStatus(f.w, f.r, http.StatusBadGateway, errNoAnswer)
}

// responseWriter is the visitor's side of a flow.
type responseWriter struct {
	http.ResponseWriter
	f *flow
}

func (w responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader holds back interim answers: modify never saw their headers.
func (w responseWriter) WriteHeader(status int) {
	if status >= 200 {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w responseWriter) Write(b []byte) (int, error) {
	if err := w.f.checkLease(); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(b)
}

// Hijack hands the connection of a WebSocket over, to be closed with the flow.
func (w responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return visitor{conn, w.f}, rw, w.f.closeOnCut(conn)
}

// upload is what the visitor sends with a request.
type upload struct {
	io.ReadCloser
	f *flow
}

func (u upload) Read(b []byte) (int, error) {
	n, err := u.ReadCloser.Read(b)
	if lost := u.f.checkLease(); lost != nil {
		return 0, lost
	}
	return n, err
}

// visitor is the visitor's side of a WebSocket. It has no ReadFrom: the
// kernel would copy without checking the lease.
type visitor struct {
	net.Conn
	f *flow
}

func (v visitor) Write(b []byte) (int, error) {
	if err := v.f.checkLease(); err != nil {
		return 0, err
	}
	return v.Conn.Write(b)
}

// CloseWrite ends what the notebook sends.
func (v visitor) CloseWrite() error {
	if half, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return v.Conn.Close()
}

// tunnel is the notebook's side of a WebSocket.
type tunnel struct {
	io.ReadWriteCloser
	f *flow
}

func (t tunnel) Write(b []byte) (int, error) {
	if err := t.f.checkLease(); err != nil {
		return 0, err
	}
	if !isControlFrame(b) {
		t.f.p.activity.touch(t.f.workspace, time.Now())
	}
	return t.ReadWriteCloser.Write(b)
}

// isControlFrame guesses whether b is one ping, pong or close frame, which a
// browser sends with nobody before it. In the middle of a message the guess may
// be wrong, but the message's beginning has been noticed by then.
func isControlFrame(b []byte) bool {
	const opcode, firstControl, longest = 0x0f, 0x8, 2 + 4 + 125
	return len(b) > 0 && len(b) <= longest && b[0]&opcode >= firstControl
}
