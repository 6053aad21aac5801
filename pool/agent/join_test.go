package agent

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/pool/authority"
	"weir/pool/providers"
)

// patience is how long a test waits for what has to happen.
const patience = 2 * time.Minute

// pod is an agent for which a cluster vouches, through its restarts.
type pod struct {
	*testing.T
	config Config
	log    *safeBuffer
}

// safeBuffer is a log that is read while it is written.
type safeBuffer struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	want string // of which tell is told
	tell func()
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.want != "" && bytes.Contains(p, []byte(b.want)) {
		b.tell()
	}
	return b.buf.Write(p)
}

// says is closed when the log says something.
func (b *safeBuffer) says(text string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	happened, tell := signal()
	b.want, b.tell = text, tell
	return happened
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// pod knows this office, and has a token.
func (o *office) pod(t *testing.T) *pod {
	t.Helper()
	dir := t.TempDir()
	p := &pod{t, o.config(o.NewCode()), &safeBuffer{}}
	p.config.Code, p.config.Dir, p.config.Server, p.config.Clock = "", filepath.Join(dir, "state"), o.url, o.clock
	p.config.Log = slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p.config.Cluster = Cluster{TokenFile: filepath.Join(dir, "token"), Authority: filepath.Join(dir, "authority.crt")}
	p.write(p.config.Cluster.TokenFile, "first-token\n")
	p.write(p.config.Cluster.Authority, string(o.PEM()))
	return p
}

func (p *pod) write(file, text string) {
	p.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// runUntil runs the agent until something has happened, and then asks it to
// end.
func (p *pod) runUntil(happened <-chan struct{}) {
	p.Helper()
	ctx, cancel := context.WithCancel(p.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- Run(ctx, p.config) }()
	select {
	case err := <-done:
		p.Fatalf("it has ended: %v\n%s", err, p.log)
	case <-time.After(patience):
		p.Fatalf("not within %s\n%s", patience, p.log)
	case <-happened:
	}
	cancel()
	if err := <-done; err != nil {
		p.Error(err)
	}
}

// signal is closed by the first of many calls.
func signal() (happened chan struct{}, tell func()) {
	happened = make(chan struct{})
	var once sync.Once
	return happened, func() { once.Do(func() { close(happened) }) }
}

// heard lets beats be answered, and tells of the first that the office likes.
func (o *office) heard(like func(providers.Heartbeat) bool) <-chan struct{} {
	happened, tell := signal()
	o.answer = func(b providers.Heartbeat, _ string) (int, any) {
		if like(b) {
			tell()
		}
		return 200, providers.Orders{Token: "t", Every: 100 * time.Millisecond}
	}
	return happened
}

// The agent asks until it is let in, with the token that the file holds then,
// and speaks with the GPU code of the node that the portal takes it for.
func TestJoin(t *testing.T) {
	o := newOffice(t)
	p := o.pod(t)
	var shown []string
	o.join = func(j providers.Joining) int {
		shown = append(shown, j.Token)
		if j.Machine != p.config.Digest || len(j.Devices) != 1 {
			t.Errorf("it shows %+v", j)
		}
		if len(shown) == 1 {
			p.write(p.config.Cluster.TokenFile, "second-token")
			return 401
		}
		return 0
	}
	code := providers.GPUCode(providers.NodeDigest("node-1"), []string{"GPU-0"})
	p.runUntil(o.heard(func(b providers.Heartbeat) bool { return b.GPUCode == code }))
	if got := strings.Join(shown, " "); got != "first-token second-token" {
		t.Errorf("the tokens were %s", got)
	}
	s, err := load(p.config.Dir)
	if err != nil || s.Provider != "node-1" || s.Machine != providers.NodeDigest("node-1") || s.Host != p.config.Digest || s.Current.Certificate == "" {
		t.Errorf("on the disk is %+v, %v", s, err)
	}
	if log := p.log.String(); strings.Contains(log, "-token") || !strings.Contains(log, "Not you.") {
		t.Errorf("the log is\n%s", log)
	}

	o.join = func(providers.Joining) int { t.Error("it enrols again"); return 403 }
	p.runUntil(o.heard(func(b providers.Heartbeat) bool { return b.GPUCode == code }))
}

// Who was shut out asks the cluster again; so does who has the state of
// another machine.
func TestJoinAgain(t *testing.T) {
	o := newOffice(t)
	p := o.pod(t)
	joins := 0
	o.join = func(providers.Joining) int { joins++; return 0 }
	happened, tell := signal()
	o.answer = func(providers.Heartbeat, string) (int, any) {
		if joins == 1 {
			return 403, map[string]string{"kind": "forbidden", "detail": "Two agents used one key."}
		}
		tell()
		return 200, providers.Orders{Token: "t", Every: time.Second}
	}
	p.runUntil(happened)
	if joins != 2 {
		t.Errorf("shut out once, it has enrolled %d times", joins)
	}
	p.config.Digest = providers.MachineDigest("another machine, with a copy of the disk")
	p.runUntil(o.heard(func(providers.Heartbeat) bool { return joins == 3 }))
	o.mu.Lock()
	o.now = o.now.Add(2 * o.life) // it was off for long
	o.mu.Unlock()
	p.runUntil(o.heard(func(providers.Heartbeat) bool { return joins == 4 }))
}

// What a node's directory holds of a portal that was there before is of no use.
func TestJoinAnotherPortal(t *testing.T) {
	o, other := newOffice(t), newOffice(t)
	p := o.pod(t)
	o.join = func(providers.Joining) int { return 0 }
	p.runUntil(o.heard(func(providers.Heartbeat) bool { return true }))
	joins := 0
	other.join = func(providers.Joining) int { joins++; return 0 }
	p.config.Server = other.url
	p.write(p.config.Cluster.Authority, string(other.PEM()))
	p.runUntil(other.heard(func(providers.Heartbeat) bool { return true }))
	p.runUntil(other.heard(func(providers.Heartbeat) bool { return true }))
	if joins != 1 {
		t.Errorf("it has enrolled %d times with the other portal", joins)
	}
}

// The token is shown to nobody but the portal.
func TestJoinOnlyTheRightPortal(t *testing.T) {
	o, other := newOffice(t), newOffice(t)
	p := o.pod(t)
	p.write(p.config.Cluster.Authority, string(other.PEM()))
	o.join = func(providers.Joining) int { t.Error("the token went to another portal"); return 0 }
	p.runUntil(p.log.says("its authority is another"))

	for name, text := range map[string]string{"nothing": "", "no certificate": "hello", "an agent's certificate": o.issue(t, csrFor(t))} {
		p.write(p.config.Cluster.Authority, text)
		if err := Run(t.Context(), p.config); err == nil || !strings.Contains(err.Error(), "the portal's authority") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func csrFor(t *testing.T) string {
	t.Helper()
	key, err := authority.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	csr, err := authority.NewRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(csr)
}

func TestReadToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if _, err := readToken(file); err == nil {
		t.Error("a file that is not there was read")
	}
	for text, want := range map[string]string{"": "", " \n": "", "abc\n": "abc", strings.Repeat("x", maxToken+1): ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readToken(file); got != want || (err == nil) != (want != "") {
			t.Errorf("%.10q gives %q, %v", text, got, err)
		}
	}
}
