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

// forward forwards the request to the notebook and its response to the visitor.
func (f *flow) forward() {
	rc := http.NewResponseController(f.w)
	rc.SetReadDeadline(time.Time{}) // uploads and streams may take long
	rc.SetWriteDeadline(time.Time{})

	reverse := httputil.ReverseProxy{
		Rewrite:        f.rewrite,
		ModifyResponse: f.modify,
		ErrorHandler:   f.fail,
		Transport:      f.p.transport,
		BufferPool:     copyBuffers,
		FlushInterval:  10 * time.Millisecond, // a complete response needs one write
		ErrorLog:       f.p.errorLog,
	}
	ctx := withEndpoint(f.ctx, f.target.Endpoint)
	r := f.r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = upload{r.Body, f}
	}
	reverse.ServeHTTP(responseWriter{f.w, f}, r)
}

// rewrite turns the visitor's request into that to the notebook.
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
	out.Header.Set("X-Forwarded-Proto", f.p.cfg.scheme(pr.In))

	f.p.reserved.stripRequest(out.Header)
	if bearer(out.Header) != "" {
		out.Header.Del("Authorization")
	}
	if f.target.Token != "" {
		out.Header.Set("Authorization", "token "+f.target.Token)
	}
	if !isWebSocket(pr.In) {
		out.Header.Del("Upgrade") // another protocol would bypass all checks
		out.Header.Del("Connection")
	}
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

// modify turns the notebook's response into that to the visitor.
func (f *flow) modify(res *http.Response) error {
	h := res.Header
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
func (f *flow) fail(w http.ResponseWriter, _ *http.Request, err error) {
	if f.ctx.Err() != nil { // the visitor left, or the flow was cut
		panic(http.ErrAbortHandler)
	}
	level := slog.LevelWarn
	if errors.Is(err, context.Canceled) {
		level = slog.LevelDebug
	}
	f.p.cfg.Logger.Log(f.r.Context(), level, "workspace does not answer",
		"workspace", f.workspace, "method", f.r.Method, "path", f.r.URL.Path, "error", err)
	f.p.cfg.respondStatus(f.w, f.r, http.StatusBadGateway, errNoAnswer)
}

// responseWriter writes the response to the visitor.
type responseWriter struct {
	http.ResponseWriter
	f *flow
}

func (w responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader drops interim responses, whose headers modify does not check.
func (w responseWriter) WriteHeader(status int) {
	if status >= 200 {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w responseWriter) Write(b []byte) (int, error) {
	return w.f.write(w.ResponseWriter, b)
}

// Hijack returns the connection of a WebSocket, which is closed with the flow.
func (w responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return visitor{conn, w.f}, rw, w.f.closeOnCut(conn)
}

// upload is the body of a request.
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
	return v.f.write(v.Conn, b)
}

// CloseWrite ends the data of the notebook.
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
	n, err := t.f.write(t.ReadWriteCloser, b)
	if err == nil && !isControlFrame(b) {
		t.f.p.activity.touch(t.f.workspace, time.Now())
	}
	return n, err
}

// isControlFrame guesses whether b is a ping, pong or close frame, which a browser
// sends without its user. The guess may be wrong within a message, whose beginning
// has been recorded as activity.
func isControlFrame(b []byte) bool {
	const opcode, firstControl, longest = 0x0f, 0x8, 2 + 4 + 125
	return len(b) > 0 && len(b) <= longest && b[0]&opcode >= firstControl
}
