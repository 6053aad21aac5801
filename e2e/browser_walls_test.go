package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// thief serves a page in a notebook that keeps the cookies of its visitors. It prints its port.
const thief = `
import http.server, threading
stolen = []
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        stolen.append(self.headers["Cookie"])
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): pass
lure = http.server.ThreadingHTTPServer(("", 0), Page)
threading.Thread(target=lure.serve_forever, daemon=True).start()
print(lure.server_port)
`

// lures leads a browser to an address, and returns why it does not get there; empty if it does.
func (b *tab) lures(address string) string {
	b.t.Helper()
	return call(b, page.Navigate, page.NavigateParams{URL: address}).ErrorText
}

// Browsers send the cookies of a host to all of its ports. An administrator who is signed in at localhost and is
// lured to a port at which a notebook serves would give away the session: the port is the notebook's own, though.
func TestNotebookStealsNoCookieInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:1"})
	team := s.sharing("eve")
	eve := team.Members[0]
	w := eve.running(team.Project, "nb")
	nb := eve.open(w.ID)
	port := strings.TrimSpace(nb.execute(thief))
	admin := chromium.person(t, s.url).tab()
	admin.signIn("operator@example.org", password)

	given := make(chan string, 16) // by the same browser to a page that it reaches
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reachable := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { given <- r.Header.Get("Cookie") }))
	reachable.Listener.Close()
	reachable.Listener = listener
	reachable.Start()
	defer reachable.Close()
	if failed := admin.lures(fmt.Sprintf("http://localhost:%d/", listener.Addr().(*net.TCPAddr).Port)); failed != "" {
		t.Fatalf("a page of this machine is not reached: %s", failed)
	}
	if cookie := <-given; !strings.Contains(cookie, "weir") {
		t.Fatalf("the attack would get nothing anyway: %q", cookie)
	}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		failed := admin.lures("http://" + host + ":" + port + "/") // another program of this machine may listen there
		t.Logf("%s: %q", host, failed)
	}
	if got := nb.execute("print(stolen)"); got != "[]\n" {
		t.Errorf("the notebook got %s", got)
	}
	if got := nb.execute("import urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{lure.server_port}'); print(len(stolen))"); got != "1\n" {
		t.Errorf("the page of the notebook does not work: %s", got)
	}
}
