package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func TestSecondServerRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	code, _, stderr := weir(t, "", s.settings(), "serve", "--listen", "127.0.0.1:"+strconv.Itoa(freePort(t)))
	if code != 1 || !strings.Contains(stderr, "another server uses the data directory "+s.dir) {
		t.Errorf("exit code %d, and it says %q", code, stderr)
	}
	code, _, stderr = weir(t, "", []string{"WEIR_DATA_DIR=" + t.TempDir()}, "serve", "--listen", "127.0.0.1:"+strconv.Itoa(s.port))
	if code != 1 || !strings.Contains(stderr, "address already in use") {
		t.Errorf("on a taken port: exit code %d, and it says %q", code, stderr)
	}
	if !s.running() {
		t.Error("the first server has ended")
	}
	s.awaitReady()
}

func TestGracefulShutdown(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{args: []string{"--shutdown-grace", "10s"}})
	team := s.team("patient", share, "ada")
	ada := team.Members[0]
	w := ada.running(team.Project, "nb")
	nb := ada.open(w.ID)
	if got := nb.execute("kept = 'kept'"); got != "" {
		t.Fatalf("the cell printed %q", got)
	}
	before := s.sandboxes()
	events, kernel := s.openStreams(ada, nb)
	defer events.Body.Close()
	defer kernel.CloseNow()

	const size = 64 << 20
	big := fmt.Sprintf("/notebook/%d/project_model/big", team.Project)
	s.writes(big, strings.Repeat("x", size))
	download := s.opens(ada, fmt.Sprintf("/api/v1/projects/%d/files/content?path=%s", team.Project, url.QueryEscape(big)))
	defer download.Body.Close()

	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, gone, func() string {
		if !strings.Contains(s.log.String(), "shutting down") {
			return "it goes on"
		}
		return ""
	})
	if n, err := io.Copy(io.Discard, download.Body); n != size || err != nil {
		t.Errorf("of the download, %d bytes came: %v", n, err)
	}
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(s.log.String(), "workspaces keep running") || !strings.Contains(s.log.String(), "weir workspaces stop --all") {
		t.Error("it does not say that workspaces keep running, and how they are stopped")
	}
	for k, pids := range before {
		for _, pid := range pids {
			if processesOf(s.dir)[pid] == "" {
				t.Errorf("process %d of %v has ended with the server", pid, k)
			}
		}
	}

	s.start()
	s.awaitAgreement(reconcilePeriod)
	if now := ada.workspace(w.ID); now.State != "running" {
		t.Errorf("the workspace is %s: %s", now.State, now.Reason)
	}
	if got := nb.execute("print(kept)"); got != "kept\n" {
		t.Errorf("the kernel printed %q", got)
	}
}

// openStreams leaves an event stream and a kernel's WebSocket open, which
// never end by themselves.
func (s *server) openStreams(m member, nb notebook) (*http.Response, *websocket.Conn) {
	s.t.Helper()
	events := s.opens(m, "/events?topic=pool")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	upgrade := *nb.client
	upgrade.Timeout = 0
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(nb.origin, "http")+"/api/kernels/"+nb.kernel()+"/channels",
		&websocket.DialOptions{HTTPClient: &upgrade, HTTPHeader: http.Header{"Origin": {nb.origin}}})
	if err != nil {
		s.t.Fatal(err)
	}
	return events, conn
}

// opens is a response whose body is read later.
func (s *server) opens(m member, path string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequest("GET", s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+m.token)
	client := s.browser()
	client.Timeout = 0
	response, err := client.Do(req)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %v %v", path, response, err)
	}
	return response
}

func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.yaml")
	if err := os.WriteFile(file, []byte("colour: blue\nlog-format: xml\nshutdown-grace: 5s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	code, stdout, stderr := weir(t, "", []string{"WEIR_DATA_DIR=" + data, "WEIR_SESSION_LIFETIME=soon", "WEIR_DATABASE_URL=mysql://root:hunter2@db/weir"},
		"serve", "--config", file, "--listen", "nowhere", "--simulate-gpus", "v100:1", "--external-url", "ftp://x", "--sandbox-uid", "0")
	if code != 2 {
		t.Errorf("exit code %d, not 2", code)
	}
	for _, want := range []string{file + ":1: colour: ", file + ":2: log-format: ", "WEIR_SESSION_LIFETIME: ", "WEIR_DATABASE_URL: ",
		"--listen: ", "--simulate-gpus: ", "--external-url: ", "--sandbox-uid: "} {
		if !strings.Contains(stderr, "\n  "+want) {
			t.Errorf("%q is missing in\n%s", want, stderr)
		}
	}
	if strings.Contains(stderr, "hunter2") || stdout != "" {
		t.Errorf("it prints\n%s%s", stdout, stderr)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the data directory: %v", err)
	}
	if code, _, stderr := weir(t, "", nil, "serve", "--no-such-flag"); code != 2 {
		t.Errorf("an unknown flag: exit code %d, %s", code, stderr)
	}
}
