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

	"weir/models"
	"weir/workspaces/runtimetest"
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
	if got := runtimetest.NewKernel(w.socket(t, channels, asPage...)).Execute(within(t), t, "print(6*7)"); got != "42\n" {
		t.Errorf("6*7 = %s", got)
	}
	w.do(t, request(t, "DELETE", "/api/kernels/"+kernel.ID, nil, asPage...))
}
