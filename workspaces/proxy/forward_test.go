package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
)

// echoHeaders answers with the request as it arrived.
var echoHeaders = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	json.NewEncoder(w).Encode(map[string]any{"host": r.Host, "uri": r.RequestURI, "header": r.Header})
})

func TestRequestHygiene(t *testing.T) {
	w := newWorld(t, echoHeaders)
	r := request(t, "GET", "/a%2Fb?x=1&token=weir_x&token=other&y=%20&z=1;token=weir_y", nil, asProgram,
		"Cookie: weir_visit=s; weir_session=t; keep=1",
		"X-Forwarded-For: 6.6.6.6", "X-Forwarded-Host: evil", "X-Forwarded-Proto: https", "X-Forwarded-Prefix: /evil",
		"X-Real-Ip: 6.6.6.6", "X-Scheme: https", "Forwarded: for=6.6.6.6",
		"Connection: X-Hop, Upgrade", "X-Hop: 1", "Upgrade: h2c", "Proxy-Authorization: Basic x", "Proxy-Authenticate: Basic",
		"Proxy-Connection: keep-alive", "Keep-Alive: 5", "Te: trailers, deflate", "X-Own: kept")
	_, body := w.do(t, r)
	var got struct {
		Host, URI string
		Header    http.Header
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Host != "ws-12.localhost:8080" || got.URI != "/a%2Fb?token=other&x=1&y=+" {
		t.Errorf("%s %s", got.Host, got.URI)
	}
	for name, want := range map[string]string{
		"Authorization": "token " + secret, "Cookie": "keep=1", "X-Own": "kept",
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "ws-12.localhost:8080", "X-Forwarded-Proto": "http",
		"X-Forwarded-Prefix": "", "X-Real-Ip": "", "X-Scheme": "", "Forwarded": "",
		"X-Hop": "", "Connection": "", "Upgrade": "", "Proxy-Authorization": "", "Proxy-Authenticate": "", "Proxy-Connection": "", "Keep-Alive": "",
		"Te": "trailers",
	} {
		if values := got.Header.Values(name); strings.Join(values, "|") != want {
			t.Errorf("%s: %q, want %q", name, values, want)
		}
	}
	for _, word := range []string{"weir_", "6.6.6.6", "evil"} {
		if strings.Contains(body, word) {
			t.Errorf("%q reached the notebook: %s", word, body)
		}
	}
}

// A notebook without a token of its own gets no personal token instead; other
// credentials are its own.
func TestPersonalTokensStayHere(t *testing.T) {
	w := newWorld(t, echoHeaders)
	w.change(func() {
		target := w.targets[12]
		target.Token = ""
		w.targets[12] = target
	})
	for _, c := range []struct{ as, authorization, want string }{
		{asProgram, "", ""},
		{"Authorization: token " + ownerBearer, "", ""},
		{"Authorization: Basic eDp5", "Authorization: Bearer " + ownerBearer, ""},
		{asOwner, "Authorization: Basic eDp5", "Basic eDp5"},
	} {
		headers := []string{c.as}
		if c.authorization != "" {
			headers = append(headers, c.authorization)
		}
		_, body := w.do(t, request(t, "GET", "/", nil, headers...))
		var got struct{ Header http.Header }
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%q: %v in %s", headers, err, body)
		}
		if sent := strings.Join(got.Header["Authorization"], "|"); sent != c.want {
			t.Errorf("%q: the notebook gets %q, want %q", headers, sent, c.want)
		}
	}
}

// hopByHop are headers about the connection of a notebook, the first by its own word.
var hopByHop = []string{"X-Hop", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Upgrade"}

func TestAnswerHygiene(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Link", "</x>; rel=preload")
		h.Set("Set-Cookie", "weir_visit=early")
		w.WriteHeader(http.StatusEarlyHints)
		h.Del("Set-Cookie")
		h.Add("Set-Cookie", "weir_visit=mine")
		h.Add("Set-Cookie", "a=1; Domain=localhost")
		h.Set("Clear-Site-Data", `"cookies"`)
		h.Set("Alt-Svc", `h2=":9"`)
		h.Set("Connection", "X-Hop")
		for _, name := range hopByHop {
			h.Set(name, "1")
		}
		h.Set("Content-Security-Policy", "frame-ancestors *")
		io.WriteString(w, "x")
	}))
	r := request(t, "GET", "/", nil, asOwner)
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			t.Errorf("an interim response %d passed, with %v", status, h)
			return nil
		},
	}))
	res, _ := w.do(t, r)
	for name, want := range map[string][]string{
		"Set-Cookie":                   {"a=1"},
		"Clear-Site-Data":              nil,
		"Alt-Svc":                      nil,
		"Content-Security-Policy":      {"frame-ancestors *", "frame-ancestors 'self' " + portal},
		"X-Content-Type-Options":       {"nosniff"},
		"Referrer-Policy":              {"same-origin"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
		"Origin-Agent-Cluster":         {"?1"},
	} {
		if got := res.Header.Values(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range append(hopByHop, "Connection") {
		if got := res.Header.Values(name); got != nil {
			t.Errorf("%s of the notebook's connection is kept: %q", name, got)
		}
	}
}

// TRACE would show scripts the headers that the proxy adds.
func TestTraceIsNotForwarded(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s reached the notebook", r.Method) }))
	if res, body := w.do(t, request(t, "TRACE", "/", nil, asProgram)); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("TRACE: %d %s", res.StatusCode, body)
	}
}

func TestRedirects(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.Header.Get("X-To"))
		w.WriteHeader(http.StatusFound)
	}))
	for to, want := range map[string]string{
		"/tree?":                                  "/tree?",
		"/tree?token=" + secret:                   "/tree",
		"/tree?a=1&token=" + secret + "&b=%2F":    "/tree?a=1&b=%2F",
		"/tree?token=else":                        "/tree?token=else",
		"/login?next=%2Ftree%3Ftoken%3D" + secret: "/login?next=%2Ftree%3Ftoken%3D",
		own + "/lab?token=" + secret:              "/lab",
		own:                                       "/",
		own + "//evil.example/":                   "/evil.example/",
		"https://ws-12.localhost:8080/lab":        "/lab",
		"https://docs.example/x?token=" + secret:  "https://docs.example/x",
		"relative":                                "relative",
	} {
		res, _ := w.do(t, request(t, "GET", "/", nil, asOwner, "X-To: "+to))
		if got := res.Header.Get("Location"); got != want {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
	}
}

func TestNoAnswer(t *testing.T) {
	for _, endpoint := range []models.Endpoint{
		{Network: "unix", Address: filepath.Join(shortDir(t), "none")},
		{Network: "tcp", Address: "127.0.0.1:1"},
		{Network: "udp", Address: "127.0.0.1:1"},
		{},
	} {
		w := newWorldAt(t, endpoint)
		res, body := w.do(t, request(t, "GET", "/", nil, asOwner, asBrowser))
		if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "<p>The workspace is not responding.</p>") {
			t.Errorf("%v: %d %s", endpoint, res.StatusCode, body)
		}
		res, body = w.do(t, request(t, "GET", "/", nil, asProgram))
		if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, `"detail":"The workspace is not responding."`) {
			t.Errorf("%v: %d %s", endpoint, res.StatusCode, body)
		}
		if strings.Contains(body, secret) || endpoint.Address != "" && strings.Contains(body, endpoint.Address) {
			t.Errorf("told too much: %s", body)
		}
	}
}

// A new generation is another notebook: connections to the old one are left.
func TestGenerations(t *testing.T) {
	w := newWorld(t, hello)
	if _, body := w.do(t, request(t, "GET", "/", nil, asOwner)); body != "hello" {
		t.Fatal(body)
	}
	next := serveUnix(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "again") }))
	w.change(func() {
		w.targets[12] = Target{Workspace: 12, Generation: 2, Endpoint: models.Endpoint{Network: "unix", Address: next}}
	})
	if _, body := w.do(t, request(t, "GET", "/", nil, asOwner)); body != "again" {
		t.Error(body)
	}
}

func TestActivity(t *testing.T) {
	var told []int64
	a := newActivity(func(id int64) { told = append(told, id) })
	start := time.Unix(1000, 0)
	for _, after := range []time.Duration{0, 1, 999, 1000, 1500, 2000} {
		a.touch(12, start.Add(after*time.Millisecond))
	}
	a.touch(13, start)
	if !slices.Equal(told, []int64{12, 12, 12, 13}) {
		t.Error(told)
	}
	a.prune(start.Add(2 * time.Second))
	if len(a.last) != 1 {
		t.Errorf("remembers %v", a.last)
	}
	for frame, control := range map[string]bool{"\x8a\x80mask": true, "\x81\x85maskhello": false, "\x88": true, "": false,
		"\x8a" + strings.Repeat("x", 131): false} {
		if isControlFrame([]byte(frame)) != control {
			t.Errorf("frame %q", frame)
		}
	}
}
