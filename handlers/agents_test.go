package handlers

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/authority"
	"weir/pool/providers"
)

// counter is the agents' listener over a store of its own.
type counter struct {
	testing.TB
	enrollment *providers.Enrollment
	authority  *authority.Authority
	server     *httptest.Server
	root       policies.Actor
	log        *bytes.Buffer
}

func newCounter(t testing.TB) *counter {
	t.Helper()
	store := storetest.Open(t, "sqlite")
	access := must(policies.NewAccess())(t)
	c := &counter{TB: t, root: policies.Actor{User: storetest.User(t, store, "root@example.org", true)}, log: &bytes.Buffer{}}
	c.authority = must(authority.Open(filepath.Join(t.TempDir(), "authority.pem"), store.Now))(t)
	c.enrollment = &providers.Enrollment{Store: store, Access: access, Authority: c.authority, CertificateLifetime: time.Hour, Every: time.Second}
	c.server = httptest.NewUnstartedServer(NewAgents(c.enrollment, slog.New(slog.NewTextHandler(c.log, nil))))
	c.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	c.server.TLS = c.authority.ServerTLS()
	c.server.StartTLS()
	t.Cleanup(c.server.Close)
	return c
}

// client speaks to the listener as an agent that has only a code, or with a
// certificate.
func (c *counter) client(key, certificate string) *http.Client {
	c.Helper()
	config := authority.PinnedTLS(c.authority.Fingerprint(), time.Now)
	if certificate != "" {
		pair := must(tls.X509KeyPair([]byte(certificate), []byte(key)))(c)
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config}
	c.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// post sends in, or a string as it is, and reads the answer into out.
func (c *counter) post(client *http.Client, path string, in, out any) (int, string) {
	c.Helper()
	text, ok := in.(string)
	if !ok {
		text = string(must(json.Marshal(in))(c))
	}
	res, err := client.Post(c.server.URL+path, "application/json", strings.NewReader(text))
	if err != nil {
		c.Fatal(err)
	}
	defer res.Body.Close()
	body := must(io.ReadAll(res.Body))(c)
	if out != nil && res.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, out); err != nil {
			c.Errorf("%s: %v", body, err)
		}
	}
	if kind := res.Header.Get("Content-Type"); (res.StatusCode == http.StatusOK) != (kind == "application/json") {
		c.Errorf("%s answers %d with %s", path, res.StatusCode, kind)
	}
	return res.StatusCode, string(body)
}

func csrOf(t testing.TB, key []byte) string {
	t.Helper()
	return string(must(authority.NewRequest(key))(t))
}

func TestAgentsListener(t *testing.T) {
	c := newCounter(t)
	digest := providers.MachineDigest("machine")
	devices := []providers.DeviceReport{{UUID: "GPU-x", Model: "NVIDIA H200", MemoryMiB: 143771}}
	gpuCode := providers.GPUCodeOf(digest, devices)
	code, _, err := c.enrollment.Authorize(t.Context(), c.root, providers.AuthorizeInput{GPUCode: gpuCode})
	if err != nil {
		t.Fatal(err)
	}
	key := must(authority.NewKey())(t)
	redemption := providers.Redemption{Code: code, CSR: csrOf(t, key), Name: "node", Machine: digest, Devices: devices}
	bare := c.client("", "")
	wrong := redemption
	wrong.Code, wrong.Name = "x", ""
	if status, body := c.post(bare, "/v1/redeem", wrong, nil); status != 422 || !strings.Contains(body, `"field":"code"`) || !strings.Contains(body, `"field":"name"`) {
		t.Errorf("%d %s", status, body)
	}
	var got providers.Enrolled
	if status, body := c.post(bare, "/v1/redeem", redemption, &got); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	agent := c.client(string(key), got.Certificate)
	beat := providers.Heartbeat{Token: got.Token, GPUCode: gpuCode, Devices: devices}
	var orders providers.Orders
	if status, body := c.post(agent, "/v1/heartbeat", beat, &orders); status != 200 || orders.State != "online" || orders.Token == got.Token {
		t.Errorf("%d %s", status, body)
	}
	next := must(authority.NewKey())(t)
	var renewed providers.Renewed
	if status, body := c.post(agent, "/v1/renew", providers.Renewal{CSR: csrOf(t, next), Token: orders.Token}, &renewed); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	beat.Token = orders.Token
	if status, body := c.post(c.client(string(next), renewed.Certificate), "/v1/heartbeat", beat, &orders); status != 200 || orders.Token == "" {
		t.Errorf("with the renewed certificate: %d %s", status, body)
	}
	var ask providers.Orders
	if status, body := c.post(agent, "/v1/heartbeat", beat, &ask); status != 200 || ask.Confirm == "" {
		t.Errorf("with the older one: %d %s", status, body)
	}
	beat.Confirm = ask.Confirm
	if status, body := c.post(agent, "/v1/heartbeat", beat, nil); status != 403 || !strings.Contains(body, `"kind":"forbidden"`) {
		t.Errorf("with the older one, confirmed: %d %s", status, body)
	}
	if strings.Contains(c.log.String(), "level=ERROR") {
		t.Errorf("the log says\n%s", c.log)
	}
}

func TestAgentsListenerRefuses(t *testing.T) {
	c := newCounter(t)
	bare := c.client("", "")
	for _, r := range []struct {
		path   string
		body   any
		status int
	}{
		{"/v1/heartbeat", providers.Heartbeat{}, 401},
		{"/v1/renew", providers.Renewal{}, 401},
		{"/v1/redeem", "", 422},
		{"/v1/redeem", "[]", 422},
		{"/v1/redeem", `{"code":1}`, 422},
		{"/v1/redeem", `{"devices":{}}`, 422},
		{"/v1/redeem", `{"devices":[` + strings.Repeat("{},", 80_000) + `{}]}`, 422},
		{"/v1/heartbeat", `{"code":"` + strings.Repeat("x", maxHeartbeatBody) + `"}`, 401},
		{"/v1/redeem", `{"code":"` + strings.Repeat("x", maxAgentBody) + `"}`, 413},
		{"/v1/other", "{}", 404},
		{"/", "{}", 404},
	} {
		if status, body := c.post(bare, r.path, r.body, nil); status != r.status || !strings.Contains(body, `"detail"`) {
			t.Errorf("%s %.40v: %d %s", r.path, r.body, status, body)
		}
	}
	// A certificate of the right authority, for an agent that there is none of.
	key := must(authority.NewKey())(t)
	request := must(authority.CheckRequest([]byte(csrOf(t, key))))(t)
	stranger := must(c.authority.Issue(request, 7, time.Hour))(t)
	if status, body := c.post(c.client(string(key), string(stranger.PEM)), "/v1/heartbeat", providers.Heartbeat{}, nil); status != 403 {
		t.Errorf("an unknown agent: %d %s", status, body)
	}
}

func TestAgentsAddress(t *testing.T) {
	w := newWorld(t)
	ask := func() (int, string) {
		r := httptest.NewRequest("GET", "http://weir.example.org:8080"+agentsAddressPath, nil)
		rec := httptest.NewRecorder()
		w.app.ServeHTTP(rec, r)
		return rec.Code, rec.Body.String()
	}
	if status, body := ask(); status != 404 {
		t.Errorf("without a listener: %d %s", status, body)
	}
	w.app.AgentsURL = func(host string) string { return "https://" + host + ":8443" }
	if status, body := ask(); status != 200 || strings.TrimSpace(body) != `{"url":"https://weir.example.org:8443"}` {
		t.Errorf("%d %s", status, body)
	}
}
