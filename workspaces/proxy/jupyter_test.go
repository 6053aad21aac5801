package proxy

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"weir/models"
)

// startJupyter runs a real notebook on a Unix socket until the test ends.
func startJupyter(t *testing.T) models.Endpoint {
	t.Helper()
	if testing.Short() {
		t.Skip("starts Jupyter")
	}
	program, err := exec.LookPath("jupyter")
	if err != nil {
		t.Fatalf("%v (“tools/setup test” installs it)", err)
	}
	home := shortDir(t)
	socket := filepath.Join(home, "s")
	cmd := exec.Command(program, "notebook", "--sock="+socket, "--no-browser", "--allow-root",
		"--NotebookApp.token="+secret, "--NotebookApp.allow_remote_access=True", "--notebook-dir="+home)
	cmd.Env = append(os.Environ(), "HOME="+home, "JUPYTER_RUNTIME_DIR="+home+"/run", "JUPYTER_CONFIG_DIR="+home+"/config",
		"JUPYTER_DATA_DIR="+home+"/data", "IPYTHONDIR="+home+"/ipython")
	log := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		force := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		force.Stop()
		if t.Failed() {
			t.Log(log)
		}
	})
	client := clientOf("unix", socket)
	deadline := time.Now().Add(patience)
	for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
		if res, err := client.Get("http://localhost/api"); err == nil {
			res.Body.Close()
			return models.Endpoint{Network: "unix", Address: socket}
		}
		if time.Now().After(deadline) {
			t.Fatal("Jupyter does not start: " + log.String())
		}
	}
}

func TestJupyter(t *testing.T) {
	w := newWorldAt(t, startJupyter(t))
	// Jupyter tells its own pages its secret, and their scripts send it along.
	asPage := []string{asOwner, "Origin: " + own, "Sec-Fetch-Site: same-origin", "Authorization: token " + secret}

	res, page := w.do(t, request(t, "GET", "/tree", nil, asOwner, asBrowser))
	if res.StatusCode != http.StatusOK || !strings.Contains(page, "<title>Home Page") {
		t.Fatalf("%d %.200s", res.StatusCode, page)
	}
	if res, _ := w.do(t, request(t, "GET", "/", nil, asOwner)); res.Header.Get("Location") != "/tree?" {
		t.Errorf("%d %s", res.StatusCode, res.Header.Get("Location"))
	}
	// nosniff is harmless only where types are right.
	for path, kind := range map[string]string{"/static/tree/js/main.min.js": "javascript", "/static/style/style.min.css": "text/css"} {
		if res, _ := w.do(t, request(t, "GET", path, nil, asOwner)); res.StatusCode != 200 || !strings.Contains(res.Header.Get("Content-Type"), kind) {
			t.Errorf("%s: %d %s", path, res.StatusCode, res.Header.Get("Content-Type"))
		}
	}

	note := `{"type":"file","format":"text","content":"kept"}`
	if res, body := w.do(t, request(t, "PUT", "/api/contents/note.txt", strings.NewReader(note), asPage...)); res.StatusCode != http.StatusCreated {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if _, body := w.do(t, request(t, "GET", "/files/note.txt", nil, asProgram)); body != "kept" {
		t.Errorf("%s", body)
	}
	foreign := []string{asOwner, "Origin: " + sibling}
	if res, _ := w.do(t, request(t, "DELETE", "/api/contents/note.txt", nil, foreign...)); res.StatusCode != http.StatusForbidden {
		t.Errorf("another origin deletes: %d", res.StatusCode)
	}

	res, body := w.do(t, request(t, "POST", "/api/kernels", strings.NewReader(`{"name":"python3"}`), asPage...))
	var kernel struct{ ID string }
	if json.Unmarshal([]byte(body), &kernel); res.StatusCode != http.StatusCreated || kernel.ID == "" {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	channels := "/api/kernels/" + kernel.ID + "/channels"
	upgrade := []string{"Upgrade: websocket", "Connection: Upgrade"}
	for _, headers := range [][]string{{asOwner}, foreign} {
		if res, _ := w.do(t, request(t, "GET", channels, nil, append(upgrade, headers...)...)); res.StatusCode != http.StatusForbidden {
			t.Errorf("%q opens a kernel: %d", headers, res.StatusCode)
		}
	}
	if got := execute(t, w.socket(t, channels, asPage...), "6*7"); got != "42" {
		t.Errorf("6*7 = %s", got)
	}
	w.do(t, request(t, "DELETE", "/api/kernels/"+kernel.ID, nil, asPage...))
}

// execute runs code in a kernel and returns its result as text.
func execute(t *testing.T, c *websocket.Conn, code string) string {
	t.Helper()
	ctx := within(t)
	ask, _ := json.Marshal(map[string]any{
		"channel":       "shell",
		"header":        map[string]any{"msg_id": "ask", "msg_type": "execute_request", "session": "test", "username": "", "version": "5.3"},
		"parent_header": map[string]any{}, "metadata": map[string]any{},
		"content": map[string]any{"code": code, "silent": false, "store_history": true,
			"user_expressions": map[string]any{}, "allow_stdin": false, "stop_on_error": true},
	})
	if err := c.Write(ctx, websocket.MessageText, ask); err != nil {
		t.Fatal(err)
	}
	for {
		_, data, err := c.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var message struct {
			Type    string `json:"msg_type"`
			Content struct{ Data map[string]string }
		}
		if json.Unmarshal(data, &message); message.Type == "execute_result" {
			return message.Content.Data["text/plain"]
		}
	}
}
