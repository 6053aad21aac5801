package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"weir/workspaces/runtimetest"
)

// notebook is a workspace as its owner's browser sees it, through the proxy.
type notebook struct {
	t      testing.TB
	client *http.Client
	origin string
}

// open enters a running workspace by a single-use token.
func (m member) open(workspace int64) notebook {
	m.s.t.Helper()
	var opened struct {
		URL string `json:"url"`
	}
	m.must("POST", workspacePath(workspace)+"/open", nil, &opened)
	n := notebook{t: m.s.t, client: m.s.browser(), origin: originOf(m.s.t, opened.URL)}
	res, err := n.client.Get(opened.URL)
	if err != nil {
		m.s.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		m.s.t.Fatalf("opening workspace %d ends at %s with %s\n%s", workspace, res.Request.URL.Path, res.Status, body)
	}
	return n
}

func originOf(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Scheme + "://" + u.Host
}

// call makes one request as the notebook's own pages would.
func (n notebook) call(method, path, body string) (int, string) {
	n.t.Helper()
	req, err := http.NewRequest(method, n.origin+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	req.Header.Set("Origin", n.origin)
	res, err := n.client.Do(req)
	if err != nil {
		n.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		n.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, string(answer)
}

// status is that of the response to a program with an access token, or to a page of the notebook.
func (n notebook) status(path, token string) int {
	n.t.Helper()
	req, err := http.NewRequest("GET", n.origin+path, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := n.client.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// execute runs Python code and returns what it printed; see executeCell.
func (n notebook) execute(code string) string {
	n.t.Helper()
	return executeCell(n.t, n.client, n.origin, code)
}

// executeCell runs Python code on a notebook's first kernel, which is started
// if there is none, over the WebSocket that a browser would use. It returns
// what was printed, and the message of an exception. Who client is let in as
// is decided by its cookies.
func executeCell(t testing.TB, client *http.Client, origin, code string) string {
	t.Helper()
	n := notebook{t, client, origin}
	return n.executeIn(n.kernel(), code)
}

// executeIn is execute in the kernel with an id.
func (n notebook) executeIn(kernel, code string) string {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), starting)
	defer cancel()
	upgrade := *n.client
	upgrade.Timeout = 0 // the connection outlives its handshake
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(n.origin, "http")+"/api/kernels/"+kernel+"/channels",
		&websocket.DialOptions{HTTPClient: &upgrade, HTTPHeader: http.Header{"Origin": {n.origin}}})
	if err != nil {
		n.t.Fatalf("kernel channel: %v", err)
	}
	defer conn.CloseNow()
	return runtimetest.NewKernel(conn).Execute(ctx, n.t, code)
}

// kernel is the id of the first kernel, which is started if there is none.
func (n notebook) kernel() string {
	n.t.Helper()
	status, body := n.call("GET", "/api/kernels", "")
	var kernels []struct{ ID string }
	if err := json.Unmarshal([]byte(body), &kernels); err != nil {
		n.t.Fatalf("kernels: %d %s", status, body)
	}
	if len(kernels) > 0 {
		return kernels[0].ID
	}
	var kernel struct{ ID string }
	status, body = n.call("POST", "/api/kernels", "{}")
	if err := json.Unmarshal([]byte(body), &kernel); err != nil || status != http.StatusCreated {
		n.t.Fatalf("a new kernel: %d %s", status, body)
	}
	return kernel.ID
}
