package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/pool/authority"
	"weir/pool/providers"
)

// office is a portal's listener as far as an agent sees it: it issues
// certificates, and answers beats as a test says.
type office struct {
	*authority.Authority
	url string

	mu       sync.Mutex
	now      time.Time
	life     time.Duration
	answer   func(b providers.Heartbeat, serial string) (int, any)
	join     func(j providers.Joining) (refusal int)
	serials  []string // of each heartbeat
	tokens   []string
	renewals int
	renewers []string // the tokens with which they were asked for
	issued   string   // the last serial
}

func (o *office) clock() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{now: time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC), life: time.Hour}
	var err error
	if o.Authority, err = authority.Open(filepath.Join(t.TempDir(), "authority.pem"), o.clock); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/redeem", func(w http.ResponseWriter, r *http.Request) {
		var in providers.Redemption
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		respond(w, 200, providers.Enrolled{Provider: in.Name, Certificate: o.issue(t, in.CSR), Authority: string(o.PEM()), Token: "t0"})
	})
	mux.HandleFunc("POST /v1/join", func(w http.ResponseWriter, r *http.Request) {
		var in providers.Joining
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		if status := o.join(in); status != 0 {
			respond(w, status, map[string]string{"kind": "unauthenticated", "detail": "Not you."})
			return
		}
		respond(w, 200, providers.Enrolled{Provider: "node-1", Certificate: o.issue(t, in.CSR), Authority: string(o.PEM()), Token: "t0", Machine: providers.NodeDigest("node-1")})
	})
	mux.HandleFunc("POST /v1/renew", func(w http.ResponseWriter, r *http.Request) {
		var in providers.Renewal
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		if in.Confirm != in.Token+"!" { // as after an answer that was lost
			respond(w, 200, providers.Renewed{Confirm: in.Token + "!"})
			return
		}
		o.renewals++
		o.renewers = append(o.renewers, in.Token)
		respond(w, 200, providers.Renewed{Certificate: o.issue(t, in.CSR)})
	})
	mux.HandleFunc("POST /v1/heartbeat", func(w http.ResponseWriter, r *http.Request) {
		var in providers.Heartbeat
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		serial := authority.PeerOf(r.TLS.PeerCertificates[0]).Serial
		o.serials, o.tokens = append(o.serials, serial), append(o.tokens, in.Token)
		status, answer := o.answer(in, serial)
		respond(w, status, answer)
	})
	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.TLS = o.ServerTLS()
	server.TLS.NextProtos = []string{"http/1.1"}
	server.StartTLS()
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

func (o *office) issue(t *testing.T, csr string) string {
	t.Helper()
	r, err := authority.CheckRequest([]byte(csr))
	if err != nil {
		t.Error(err)
	}
	cert, err := o.Issue(r, 1, o.life)
	if err != nil {
		t.Error(err)
	}
	o.issued = cert.Serial
	return string(cert.PEM)
}

func respond(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}

// enrolled is a client that has redeemed a code.
func (o *office) enrolled(t *testing.T) *client {
	t.Helper()
	d, err := openDir(filepath.Join(t.TempDir(), "agent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.close() })
	c := &client{dir: d, clock: o.clock, log: slog.New(slog.DiscardHandler), state: state{Server: o.url}}
	if err := c.enrol(t.Context(), o.config(o.NewCode())); err != nil {
		t.Fatal(err)
	}
	if err := c.use(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (o *office) config(code authority.Code) Config {
	return Config{Code: code.String(), Name: "node", Digest: providers.MachineDigest("m"), Machine: &stub{gpus: 1}, Log: slog.New(slog.DiscardHandler)}
}

// onDisk is what a restarted agent would know.
func onDisk(t *testing.T, c *client) state {
	t.Helper()
	s, err := load(c.dir.path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEnrolKeepsWhatItGets(t *testing.T) {
	o := newOffice(t)
	c := o.enrolled(t)
	s := onDisk(t, c)
	if s != c.state || s.Token != "t0" || s.Provider != "node" || s.Authority != string(o.PEM()) || s.Joining != "" || s.Current.Key == "" {
		t.Errorf("on the disk is %+v", s)
	}
	info, err := os.Stat(filepath.Join(c.dir.path, stateFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := openDir(c.dir.path); err == nil {
		t.Error("two agents run from one directory")
	}
}

func TestEnrolOnlyWithTheRightPortal(t *testing.T) {
	o, other := newOffice(t), newOffice(t)
	d, err := openDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	c := &client{dir: d, clock: o.clock, log: slog.New(slog.DiscardHandler), state: state{Server: o.url}}
	if err := c.enrol(t.Context(), o.config(other.NewCode())); !errors.Is(err, authority.ErrStranger) {
		t.Errorf("the code went to another portal: %v", err)
	}
	if onDisk(t, c).Joining == "" {
		t.Error("the key was not kept before the code was shown to anybody")
	}
}

func TestTokensAreOnTheDiskBeforeTheyAreUsed(t *testing.T) {
	o := newOffice(t)
	c := o.enrolled(t)
	n := 0
	o.answer = func(providers.Heartbeat, string) (int, any) {
		n++
		return 200, providers.Orders{Token: fmt.Sprint("t", n)}
	}
	for i := range 3 {
		if _, err := c.Heartbeat(t.Context(), providers.Heartbeat{}); err != nil || onDisk(t, c).Token != fmt.Sprint("t", i+1) {
			t.Errorf("%v; on the disk is %s", err, onDisk(t, c).Token)
		}
	}
	// Where it cannot be kept, the older token is used again.
	path := c.dir.path
	c.dir.path = filepath.Join(path, "gone")
	for range 2 {
		if _, err := c.Heartbeat(t.Context(), providers.Heartbeat{}); err != nil {
			t.Error(err)
		}
	}
	c.dir.path = path
	if got := strings.Join(o.tokens, " "); got != "t0 t1 t2 t3 t3" {
		t.Errorf("the tokens were %s", got)
	}
}

func TestConfirms(t *testing.T) {
	o := newOffice(t)
	c := o.enrolled(t)
	asked := 0
	o.answer = func(b providers.Heartbeat, _ string) (int, any) {
		if asked++; asked < 3 {
			return 200, providers.Orders{Confirm: fmt.Sprint("c", asked)}
		}
		if b.Confirm != "c2" {
			t.Errorf("confirmed with %q", b.Confirm)
		}
		return 403, map[string]any{"kind": "forbidden", "detail": "Two of you.", "errors": []map[string]string{{"field": "f", "reason": "r"}}}
	}
	_, err := c.Heartbeat(t.Context(), providers.Heartbeat{})
	if !errors.Is(err, ErrShutOut) || !strings.Contains(err.Error(), "Two of you. f: r.") {
		t.Errorf("%v", err)
	}
	asked = -100
	if _, err := c.Heartbeat(t.Context(), providers.Heartbeat{}); err == nil || errors.Is(err, ErrShutOut) {
		t.Errorf("a portal that never decides: %v", err)
	}
}

func TestRenewal(t *testing.T) {
	o := newOffice(t)
	c := o.enrolled(t)
	first := o.issued
	renew, dead := true, ""
	o.answer = func(_ providers.Heartbeat, serial string) (int, any) {
		if serial == dead {
			return 403, map[string]any{"kind": "forbidden", "detail": "unknown"}
		}
		return 200, providers.Orders{Token: "t", Renew: renew}
	}
	beat := func() {
		t.Helper()
		if _, err := c.Heartbeat(t.Context(), providers.Heartbeat{}); err != nil {
			t.Fatal(err)
		}
	}
	beat()
	s := onDisk(t, c)
	if o.renewals != 1 || o.renewers[0] != "t" || s.Next.Certificate == "" || s.Current.Certificate == "" || s.Next.Key == s.Current.Key {
		t.Fatalf("after %d renewals there is %+v", o.renewals, s)
	}
	renew, dead = false, o.issued // the portal forgets the new one: the old one still works
	beat()
	if s := onDisk(t, c); s.Next.Certificate != "" || o.serials[len(o.serials)-1] != first {
		t.Errorf("not back to the old certificate: %+v", s)
	}
	renew, dead = true, ""
	beat()
	renew = false
	beat()
	if s := onDisk(t, c); s.Next.Certificate != "" || o.serials[len(o.serials)-1] != o.issued || o.issued == first {
		t.Errorf("the new certificate is not the present one: %+v", s)
	}
}

func TestExpired(t *testing.T) {
	o := newOffice(t)
	c := o.enrolled(t)
	o.answer = func(providers.Heartbeat, string) (int, any) { return 200, providers.Orders{} }
	o.mu.Lock()
	o.now = o.now.Add(2 * o.life)
	o.mu.Unlock()
	if _, err := c.Heartbeat(t.Context(), providers.Heartbeat{}); !errors.Is(err, ErrShutOut) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("%v", err)
	}
}

func TestFailuresAreNotFinal(t *testing.T) {
	o := newOffice(t)
	c := o.enrolled(t)
	for status, answer := range map[int]any{500: "x", 503: map[string]string{"kind": "unavailable", "detail": "x"}, 409: map[string]string{"kind": "conflict", "detail": "x"}, 404: ""} {
		o.answer = func(providers.Heartbeat, string) (int, any) { return status, answer }
		if _, err := c.Heartbeat(t.Context(), providers.Heartbeat{}); err == nil || errors.Is(err, ErrShutOut) || errors.Is(err, errInvalid) {
			t.Errorf("%d: %v", status, err)
		}
	}
	o.answer = func(providers.Heartbeat, string) (int, any) {
		return 422, map[string]string{"kind": "invalid", "detail": "x"}
	}
	if _, err := c.Heartbeat(t.Context(), providers.Heartbeat{}); !errors.Is(err, errInvalid) {
		t.Errorf("422: %v", err)
	}
}

func TestStateOnTheDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	if enrolled, err := Enrolled(path); enrolled || err != nil {
		t.Errorf("without a directory: %t, %v", enrolled, err)
	}
	d, err := openDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.save(state{Server: "s", Joining: "k", JoiningCode: "h"}); err != nil {
		t.Fatal(err)
	}
	if enrolled, err := Enrolled(path); enrolled || err != nil { // without the code, it does not go on
		t.Errorf("with an unfinished enrollment: %t, %v", enrolled, err)
	}
	want := state{Server: "s", Token: "t", Current: credential{"k", "c"}}
	if err := d.save(want); err != nil {
		t.Fatal(err)
	}
	if got, err := load(d.path); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if enrolled, err := Enrolled(path); !enrolled || err != nil {
		t.Errorf("%t, %v", enrolled, err)
	}
	if entries, _ := os.ReadDir(path); len(entries) != 2 {
		t.Errorf("files are left: %v", entries)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, stateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), Config{Dir: path}); err == nil || !strings.Contains(err.Error(), "enrol again") {
		t.Errorf("a broken state: %v", err)
	}
	if err := Run(t.Context(), Config{Dir: t.TempDir(), Clock: time.Now, Log: slog.New(slog.DiscardHandler)}); !errors.Is(err, ErrNotEnrolled) {
		t.Errorf("an empty directory: %v", err)
	}
}

func TestListener(t *testing.T) {
	status, body := 200, `{"url":"https://127.0.0.1:9"}`
	portal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/agents/address" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer portal.Close()
	if url, err := listener(t.Context(), portal.URL); err != nil || url != "https://127.0.0.1:9" {
		t.Errorf("%s, %v", url, err)
	}
	for _, wrong := range []string{`{}`, `{"url":"http://127.0.0.1:9"}`, `junk`, `{"url":"https://h/path"}`} {
		body = wrong
		if url, err := listener(t.Context(), portal.URL); err == nil {
			t.Errorf("%s gives %s", wrong, url)
		}
	}
	status = 404
	if _, err := listener(t.Context(), portal.URL); err == nil || !strings.Contains(err.Error(), "--agents-listen") {
		t.Errorf("without a listener: %v", err)
	}
	direct := newOffice(t)
	if url, err := listener(t.Context(), direct.url); err != nil || url != direct.url {
		t.Errorf("the listener itself: %s, %v", url, err)
	}
	if _, err := checkAddress("http://weir.example.org", "https://127.0.0.1:8443"); err == nil || !strings.Contains(err.Error(), "this machine itself") {
		t.Errorf("another machine's loopback: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := listener(ctx, portal.URL); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{"python": "python", "a\nb\x00": "a?b?", "\xff": "?", "\u202ex": "?x", "日本": "日本"} {
		if got := printable(in, 100); got != want {
			t.Errorf("%q becomes %q", in, got)
		}
	}
	if got := printable("日本語", 2); got != "日本" {
		t.Errorf("cut it is %q", got)
	}
}

func TestSecretsStayOutOfTheLog(t *testing.T) {
	o := newOffice(t)
	var log bytes.Buffer
	code := o.NewCode()
	c := o.config(code)
	c.Dir, c.Server, c.Clock, c.Log = t.TempDir(), o.url, o.clock, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.answer = func(providers.Heartbeat, string) (int, any) {
		return 403, map[string]string{"kind": "forbidden", "detail": "no"}
	}
	if err := Run(t.Context(), c); !errors.Is(err, ErrShutOut) {
		t.Fatal(err)
	}
	s, err := load(c.Dir)
	if err != nil || strings.Contains(log.String(), code.String()[:9]) || strings.Contains(log.String(), s.Token+" ") || !strings.Contains(log.String(), "enrolled") {
		t.Errorf("%v; the log is\n%s", err, log.String())
	}
}
