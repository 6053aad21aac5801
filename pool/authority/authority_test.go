package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// clock is a time that a test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func open(t *testing.T, file string, c *clock) *Authority {
	t.Helper()
	a, err := Open(file, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func fresh(t *testing.T) (*Authority, *clock) {
	t.Helper()
	c := &clock{now: start}
	return open(t, filepath.Join(t.TempDir(), "d", "authority.pem"), c), c
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// request is a new key and a checked request for it.
func request(t *testing.T) (key []byte, r Request) {
	t.Helper()
	key = must(NewKey())(t)
	return key, must(CheckRequest(must(NewRequest(key))(t)))(t)
}

func TestOpenKeepsTheAuthority(t *testing.T) {
	c := &clock{now: start}
	file := filepath.Join(t.TempDir(), "d", "authority.pem")
	a, b := open(t, file, c), open(t, file, c)
	if a.Fingerprint() != b.Fingerprint() || string(a.PEM()) != string(b.PEM()) {
		t.Error("the second opening made another authority")
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left := must(os.ReadDir(filepath.Dir(file)))(t); len(left) != 1 {
		t.Errorf("files are left: %v", left)
	}
	if strings.Contains(string(a.PEM()), keyType) {
		t.Error("the key is given away")
	}
}

func TestOpenRefusesABrokenFile(t *testing.T) {
	a, _ := fresh(t)
	key := must(NewKey())(t)
	for name, text := range map[string]string{
		"empty":           "",
		"key alone":       string(key),
		"certificate":     string(a.PEM()),
		"a foreign key":   string(key) + string(a.PEM()),
		"broken":          "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"another's leaf ": string(key) + string(leaf(t, a, key)),
	} {
		file := filepath.Join(t.TempDir(), "authority.pem")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(file, time.Now); err == nil {
			t.Errorf("%s: opened", name)
		}
		if raw := must(os.ReadFile(file))(t); string(raw) != text {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func leaf(t *testing.T, a *Authority, key []byte) []byte {
	t.Helper()
	r := must(CheckRequest(must(NewRequest(key))(t)))(t)
	return must(a.Issue(r, 1, time.Hour))(t).PEM
}

func TestCheckRequest(t *testing.T) {
	good := must(NewRequest(must(NewKey())(t)))(t)
	if _, err := CheckRequest(good); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(good)
	block.Bytes[len(block.Bytes)-1] ^= 1 // of the signature
	forged := pem.EncodeToMemory(block)
	large := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	der := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, large))(t)
	for name, text := range map[string][]byte{
		"nothing":     nil,
		"no PEM":      []byte("hello"),
		"a key":       must(NewKey())(t),
		"junk inside": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("junk")}),
		"forged":      forged,
		"P-384":       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		"too long":    append(good, make([]byte, maxRequest)...),
	} {
		if _, err := CheckRequest(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestIssue(t *testing.T) {
	a, _ := fresh(t)
	_, r := request(t)
	first, second := must(a.Issue(r, 7, time.Hour))(t), must(a.Issue(r, 7, time.Hour))(t)
	if first.Serial == second.Serial || len(first.Serial) != 32 || first.KeyHash != r.KeyHash {
		t.Errorf("%+v and %+v", first, second)
	}
	cert := must(ParseCertificate(first.PEM))(t)
	if cert.Subject.CommonName != "agent-7" || cert.IsCA || !cert.NotBefore.Equal(start.Add(-Backdate)) {
		t.Errorf("%v from %v", cert.Subject, cert.NotBefore)
	}
	want := Peer{Serial: first.Serial, Issued: start, Expires: start.Add(time.Hour)}
	if got := PeerOf(cert); got != want || first.Expires != want.Expires || first.Issued != want.Issued {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCode(t *testing.T) {
	a, _ := fresh(t)
	c := a.NewCode()
	text := c.String()
	if len(text) != codeLength+codeLength/groupLength-1 || strings.ContainsAny(text, "ILOU") {
		t.Errorf("the code is %s", text)
	}
	sloppy := strings.NewReplacer("0", "o", "1", "l", "-", " ").Replace(strings.ToLower(text)) + "\n"
	for _, written := range []string{text, sloppy, strings.ReplaceAll(text, "-", "")} {
		if got, err := ParseCode(written); err != nil || got != c || got.Hash() != c.Hash() {
			t.Errorf("%q reads as %v, %v", written, got, err)
		}
	}
	if c.Fingerprint != a.Fingerprint() || a.NewCode() == c || a.NewCode().Hash() == c.Hash() {
		t.Error("two codes are alike, or not the authority's")
	}
	for _, wrong := range []string{"", "x", text + "0", text[1:], strings.Repeat("U", codeLength), strings.Repeat("0", 5000), "é" + text[2:]} {
		if _, err := ParseCode(wrong); err == nil || strings.Contains(err.Error(), text[:9]) {
			t.Errorf("%.60q: %v", wrong, err)
		}
	}
}

// shake makes a TLS connection over loopback: the server greets, as an answer
// would, so that a client learns whether its certificate was taken.
func shake(t *testing.T, server, client *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	l := must(tls.Listen("tcp", "127.0.0.1:0", server))(t)
	defer l.Close()
	states := make(chan tls.ConnectionState, 1)
	go func() {
		defer close(states)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if c := conn.(*tls.Conn); c.Handshake() == nil {
			states <- c.ConnectionState()
			_, _ = c.Write([]byte("x")) // the client tells how it ended
		}
	}()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", l.Addr().String(), client)
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1))
		_ = conn.Close()
	}
	return <-states, err
}

func TestPinned(t *testing.T) {
	a, _ := fresh(t)
	other, _ := fresh(t)
	at := func(d time.Duration) func() time.Time { return func() time.Time { return start.Add(d) } }
	if _, err := shake(t, a.ServerTLS(), PinnedTLS(a.Fingerprint(), at(0))); err != nil {
		t.Error(err)
	}
	for _, wrong := range []time.Duration{-time.Hour, time.Hour, -Backdate + time.Minute, serverLife - time.Minute} {
		if _, err := shake(t, a.ServerTLS(), PinnedTLS(a.Fingerprint(), at(wrong))); err != nil {
			t.Errorf("a clock wrong by %s: %v", wrong, err)
		}
	}
	if _, err := shake(t, other.ServerTLS(), PinnedTLS(a.Fingerprint(), at(0))); !errors.Is(err, ErrStranger) {
		t.Errorf("another authority: %v", err)
	}
	// A stranger who shows the right authority's certificate beside its own.
	impostor := other.ServerTLS()
	forged := must(other.issueServer(start))(t)
	forged.Certificate = append(forged.Certificate, a.cert.Raw)
	impostor.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return forged, nil }
	if _, err := shake(t, impostor, PinnedTLS(a.Fingerprint(), at(0))); err == nil {
		t.Error("the impostor was believed")
	}
	// An agent's certificate is not the listener's.
	key, r := request(t)
	agent := must(tls.X509KeyPair(must(a.Issue(r, 1, time.Hour))(t).PEM, key))(t)
	agent.Certificate = append(agent.Certificate, a.cert.Raw)
	impostor.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &agent, nil }
	if _, err := shake(t, impostor, PinnedTLS(a.Fingerprint(), at(0))); err == nil {
		t.Error("an agent was taken for the listener")
	}
}

func TestAgent(t *testing.T) {
	a, c := fresh(t)
	other, _ := fresh(t)
	key, r := request(t)
	issued := must(a.Issue(r, 3, time.Hour))(t)
	config := must(AgentTLS(issued.PEM, key, a.PEM(), c.Now))(t)
	state, err := shake(t, a.ServerTLS(), config)
	if err != nil || len(state.VerifiedChains) != 1 || PeerOf(state.PeerCertificates[0]).Serial != issued.Serial {
		t.Fatalf("%v, %v", state.VerifiedChains, err)
	}
	if _, err := shake(t, other.ServerTLS(), config); err == nil {
		t.Error("an enrolled agent spoke to another portal")
	}
	foreign := must(AgentTLS(must(other.Issue(r, 3, time.Hour))(t).PEM, key, a.PEM(), c.Now))(t)
	if _, err := shake(t, a.ServerTLS(), foreign); err == nil {
		t.Error("a certificate of another authority was accepted")
	}
	c.now = start.Add(time.Hour + time.Second)
	if _, err := shake(t, a.ServerTLS(), config); !Expired(err) {
		t.Errorf("after its end: %v", err)
	}
}

func TestServerCertificateIsReplaced(t *testing.T) {
	a, c := fresh(t)
	get := a.ServerTLS().GetCertificate
	first := must(get(nil))(t)
	c.now = start.Add(serverLife/2 - time.Second)
	if again := must(get(nil))(t); again != first {
		t.Error("replaced too early")
	}
	c.now = start.Add(serverLife / 2)
	if again := must(get(nil))(t); again == first {
		t.Error("not replaced")
	}
}
