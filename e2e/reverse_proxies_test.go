package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// frontend is a reverse proxy before a server, as the documentation configures it.
type frontend struct {
	*server
	dir         string
	https, http int // ports on the loopback interface
}

// visitor is the address of those who come through a reverse proxy, which has another.
const visitor = "127.0.0.2"

// The documented configurations of nginx and Caddy, with other ports and a certificate
// of the test's own, serve all that people and programs do.
func TestReverseProxies(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]func(*frontend, string) *exec.Cmd{"nginx": (*frontend).nginx, "caddyfile": (*frontend).caddy} {
		t.Run(name, func(t *testing.T) {
			f := newFrontend(t)
			f.run(command(f, documented(t, "tls.md", name)))
			f.redirects()
			limit := share
			limit.StorageMiB = 100
			ada := f.team("vision", limit, "ada").Members[0]
			if cookie := f.session(ada.Email); !strings.HasPrefix(cookie.Name, "__Host-") {
				t.Errorf("signed in with the cookie %s", cookie.Name)
			}
			f.recordsAddress(ada)
			f.uploads(ada, 1)
			events := ada.follow("pool")
			w := ada.running(1, "notebook")
			if _, err := readUntil(events, "data: pool"); err != nil {
				t.Errorf("the event stream: %v", err)
			}
			if got := ada.open(w.ID).execute("print(6*7)"); got != "42\n" {
				t.Errorf("the cell printed %q", got)
			}
		})
	}
}

// documented is the only block of a how-to in a language.
func documented(t testing.TB, page, language string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../docs/how-to", page))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(raw), "```"+language+"\n")
	if len(parts) != 2 {
		t.Fatalf("%s has %d blocks of %s", page, len(parts)-1, language)
	}
	block, _, _ := strings.Cut(parts[1], "```")
	return block
}

// adapt replaces parts of a configuration, each of which has to be there.
func adapt(t testing.TB, text string, parts ...string) string {
	t.Helper()
	for i := 0; i < len(parts); i += 2 {
		if !strings.Contains(text, parts[i]) {
			t.Fatalf("there is no %q in\n%s", parts[i], text)
		}
	}
	return strings.NewReplacer(parts...).Replace(text)
}

// newFrontend starts a server with the documented settings. Its browsers come through
// the reverse proxy.
func newFrontend(t testing.TB) *frontend {
	t.Helper()
	f := &frontend{dir: t.TempDir(), https: freePort(t), http: freePort(t)}
	url := "https://weir.example.org:" + strconv.Itoa(f.https)
	settings := f.write(t, "weir.yaml", adapt(t, documented(t, "tls.md", "yaml"), "https://weir.example.org", url))
	f.server = newServer(t, options{args: []string{"--config", settings}})
	f.url = url
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(f.certificate())
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(visitor)}}
	f.transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return dialer.DialContext(ctx, "tcp", "127.0.0.1:"+port)
	}}
	return f
}

func (f *frontend) write(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(f.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// certificate writes cert.pem and key.pem, for both names, and returns the first.
func (f *frontend) certificate() []byte {
	f.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"weir.example.org", "*.apps.example.org"}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		f.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	f.write(f.t, "cert.pem", string(cert))
	f.write(f.t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return cert
}

// nginx is the command for a configuration, whose servers stand among what Debian's
// own configuration has around them.
func (f *frontend) nginx(servers string) *exec.Cmd {
	servers = adapt(f.t, servers, "listen 443 ssl;", fmt.Sprintf("listen 127.0.0.1:%d ssl;", f.https), "listen 80;", fmt.Sprintf("listen 127.0.0.1:%d;", f.http),
		"/etc/weir/tls/fullchain.pem", f.dir+"/cert.pem", "/etc/weir/tls/key.pem", f.dir+"/key.pem", "127.0.0.1:8080", "127.0.0.1:"+strconv.Itoa(f.port))
	around := "daemon off;\nmaster_process off;\nerror_log stderr;\npid " + f.dir + "/nginx.pid;\nevents {}\nhttp {\naccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		around += kind + "_temp_path " + f.dir + "/" + kind + ";\n"
	}
	return exec.Command("/usr/sbin/nginx", "-e", "stderr", "-c", f.write(f.t, "nginx.conf", around+servers+"}\n"))
}

// caddy is the command for a configuration.
func (f *frontend) caddy(sites string) *exec.Cmd {
	certificate := fmt.Sprintf("\ttls %[1]s/cert.pem %[1]s/key.pem\n", f.dir)
	sites = adapt(f.t, sites, "weir.example.org {\n", "weir.example.org {\n"+certificate, "\ttls {\n\t\tdns cloudflare {env.CLOUDFLARE_API_TOKEN}\n\t}\n", certificate,
		"127.0.0.1:8080", "127.0.0.1:"+strconv.Itoa(f.port))
	global := fmt.Sprintf("{\n\tadmin off\n\tdefault_bind 127.0.0.1\n\thttp_port %d\n\thttps_port %d\n}\n", f.http, f.https)
	cmd := exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", f.write(f.t, "Caddyfile", global+sites))
	cmd.Env = append(os.Environ(), "HOME="+f.dir, "XDG_DATA_HOME="+f.dir, "XDG_CONFIG_HOME="+f.dir)
	return cmd
}

// run starts a reverse proxy, which ends with the test, and waits until it answers.
func (f *frontend) run(cmd *exec.Cmd) {
	f.t.Helper()
	said := &transcript{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if f.t.Failed() {
			f.t.Logf("%s said:\n%s", cmd, said)
		}
	})
	eventually(f.t, ready, func() string {
		res, err := f.browser().Get(f.url + "/healthz")
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK || res.Header.Get("Strict-Transport-Security") == "" {
			return fmt.Sprint(res.Status, res.Header)
		}
		return ""
	})
}

// redirects wants plain HTTP to lead to TLS.
func (f *frontend) redirects() {
	f.t.Helper()
	client := f.browser()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Get(fmt.Sprintf("http://weir.example.org:%d/projects", f.http))
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	if to := res.Header.Get("Location"); res.StatusCode < 300 || res.StatusCode >= 400 || !strings.HasPrefix(to, "https://weir.example.org") || !strings.HasSuffix(to, "/projects") {
		f.t.Errorf("plain HTTP is answered by %s with Location %q", res.Status, to)
	}
}

// do makes a request of the API through the reverse proxy.
func (f *frontend) do(m member, method, path, contentType string, body []byte) (status int, answer string) {
	f.t.Helper()
	req, err := http.NewRequest(method, f.url+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + m.token}, "Content-Type": {contentType}, "X-Forwarded-For": {"203.0.113.9"}}
	res, err := f.browser().Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// recordsAddress wants the client's address in the audit log, whatever it says itself.
func (f *frontend) recordsAddress(m member) {
	f.t.Helper()
	if status, answer := f.do(m, "POST", "/tokens", "application/json", []byte(`{"name":"through the proxy"}`)); status != http.StatusCreated {
		f.t.Fatalf("a token: %d %s", status, answer)
	}
	var entries struct {
		Items []struct{ Action, Object, Address string }
	}
	f.api(f.admin()).must("GET", "/audit?limit=1&object=token&actor="+m.Email, nil, &entries)
	if len(entries.Items) != 1 || entries.Items[0].Address != visitor {
		f.t.Errorf("the audit log says %+v", entries.Items)
	}
}

// uploads sends a file that is larger than what proxies and the API accept by default.
func (f *frontend) uploads(m member, project int64) {
	f.t.Helper()
	content := bytes.Repeat([]byte("0123456789abcdef"), 5<<16) // 5 MiB
	path := fmt.Sprintf("/projects/%[1]d/files/content?path=/notebook/%[1]d/project_model/large", project)
	if status, answer := f.do(m, "PUT", path, "application/octet-stream", content); status != http.StatusOK {
		f.t.Fatalf("an upload: %d %s", status, answer)
	}
	if status, answer := f.do(m, "GET", path, "", nil); status != http.StatusOK || answer != string(content) {
		f.t.Errorf("the upload comes back as %d with %d bytes", status, len(answer))
	}
}
