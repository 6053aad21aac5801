package local

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/runtime"
	"weir/workspaces/runtimetest"
)

// VS Code is served to who has the token, by the address as it came, and is started again after it
// has ended. Its start is not work; a file that it has saved is.
func TestVSCode(t *testing.T) {
	runtimetest.NeedsCodeServer(t)
	r := open(t, config(t.TempDir()))
	spec, home := notebookSpec(1), share(t)
	spec.Mounts = []models.Mount{{Source: home, Target: runtime.NotebookHome}}
	at := running(t, r, start(t, r, spec))
	get := func(token, path string) (code int, body string) {
		eventually(t, "VS Code has started", func() bool {
			code, body = runtimetest.Call(t, at, token, http.MethodGet, path, "")
			return code != http.StatusServiceUnavailable // the page, while it starts
		})
		return code, body
	}
	if code, body := get("", "/code/healthz"); strings.Contains(body, "lastHeartbeat") {
		t.Errorf("it is served without the token: %d %.300s", code, body)
	}
	if code, body := get(spec.Token, "/code/?folder=/home/jovyan"); code != http.StatusOK || !strings.Contains(body, "vscode-workbench-web-configuration") {
		t.Fatalf("its page: %d %.300s", code, body)
	}
	if code, body := runtimetest.Call(t, at, spec.Token, http.MethodPost, "/code/mint-key", ""); code != http.StatusOK {
		t.Errorf("a POST: %d %.300s", code, body)
	}
	if code, body := get(spec.Token, "/code/healthz"); code != http.StatusOK || !strings.Contains(body, "lastHeartbeat") {
		t.Errorf("its health: %d %.300s", code, body)
	}
	for _, path := range []string{"/code/a%20b", "/code/%E6%96%87", "/code/x%20HTTP/1.1%0D%0AHost:a%0D%0A%0D%0APOST%20/mint-key%20HTTP/1.1%0D%0A"} {
		if code, body := get(spec.Token, path); code != http.StatusNotFound || body != "Not found." {
			t.Errorf("%s: %d %.300s", path, code, body)
		}
	}
	// As files are saved: each has a folder there.
	saved := filepath.Join(home, ".local/share/code-server/User/History/1a2b3c")
	if err := os.MkdirAll(saved, 0o755); err != nil {
		t.Fatal(err)
	}
	observed, err := runtime.ReadActivity(t.Context(), at, spec.Token)
	if err != nil || observed.Typed == nil || *observed.Typed > patience {
		t.Errorf("activity: %+v, %v", observed, err)
	}
	if observed.CPU > 300*time.Millisecond {
		t.Errorf("its own %s count as work", observed.CPU)
	}

	if code, body := runtimetest.Call(t, at, spec.Token, http.MethodPost, "/api/kernels", "{}"); code != http.StatusCreated {
		t.Fatalf("a kernel: %d %s", code, body)
	}
	killed := runtimetest.Execute(t, at, spec.Token, `import glob, os, signal
for file in glob.glob("/proc/[0-9]*/cmdline"):
    if b"out/node/entry" in open(file, "rb").read():
        os.kill(int(file.split("/")[2]), signal.SIGKILL)
        print("killed")`)
	if !strings.Contains(killed, "killed") {
		t.Errorf("code-server did not run: %q", killed)
	}
	if code, body := get(spec.Token, "/code/healthz"); code != http.StatusOK {
		t.Errorf("after a crash: %d %.300s", code, body)
	}
}

// An installation that does not start is not offered, with the reason; nor does it harm a workspace.
func TestBrokenVSCode(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, models.CodeServer), []byte("#!/bin/sh\necho its modules are missing >&2\nexit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	offered := false
	for _, d := range Discover(t.Context(), testUser) {
		if d.DefaultPath == models.VSCode.Path {
			offered = true
			if reason := d.Unavailable.String(); !strings.Contains(reason, "its modules are missing") || len(d.Apps()) != 1 {
				t.Errorf("%s: %q, apps %v", d.Name, reason, d.Apps())
			}
		} else if d.VersionOf(models.CodeServer) != "" {
			t.Errorf("%s has VS Code", d.Name)
		}
	}
	if !offered {
		t.Error("it was not found")
	}
	r := open(t, config(t.TempDir()))
	spec := notebookSpec(1)
	at := running(t, r, start(t, r, spec))
	code, body := runtimetest.Call(t, at, spec.Token, http.MethodGet, "/code/", "")
	if code != http.StatusBadGateway || !strings.Contains(body, "it exited with code 7. its modules are missing") {
		t.Errorf("its page: %d %.500s", code, body)
	}
}

// A start that fails because the machine is busy is repeated.
func TestSlowVSCode(t *testing.T) {
	bin := t.TempDir()
	program := `#!/usr/bin/python3
import http.server, os, socketserver, sys
path = sys.argv[sys.argv.index("--socket") + 1]
if not os.path.exists(path + ".tried"):
    open(path + ".tried", "w").close()
    sys.exit("error timed out")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"it serves")
    def address_string(self):
        return "-"
socketserver.UnixStreamServer(path, Handler).serve_forever()
`
	if err := os.WriteFile(filepath.Join(bin, models.CodeServer), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	r := open(t, config(t.TempDir()))
	spec := notebookSpec(1)
	at := running(t, r, start(t, r, spec))
	if code, body := runtimetest.Call(t, at, spec.Token, http.MethodGet, "/code/", ""); code != http.StatusOK || body != "it serves" {
		t.Errorf("its page: %d %.500s", code, body)
	}
}

// A check that succeeded is repeated when the installation or its user is another one.
func TestCodeServerIsTriedOnce(t *testing.T) {
	runtimetest.NeedsCodeServer(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	user := identity{uid: testUser, gid: testUser, drop: os.Geteuid() == 0}
	tool, problem := available(user)
	first := checkCodeServer(tool, user, problem)
	if first.version == "" || !first.problem.Empty() {
		t.Fatalf("it was not tried: %+v", first)
	}
	nowhere := bubblewrap{path: "/nowhere/bwrap"}
	if again := checkCodeServer(nowhere, user, nil); again.version != first.version || again.editor != first.editor {
		t.Errorf("without another trial: %+v; want %+v", again, first)
	}
	if other := checkCodeServer(nowhere, identity{uid: testUser + 1, gid: testUser + 1}, nil); other.version != "" || other.problem.Empty() {
		t.Errorf("of another user: %+v", other)
	}
}

// An installation of npm is mounted with what it depends on, which can be beside it.
func TestPackageRoot(t *testing.T) {
	dir := t.TempDir()
	server := filepath.Join(dir, "node_modules/code-server/out/node")
	if err := os.MkdirAll(server, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, name := range map[string]string{server: "other", filepath.Join(dir, "node_modules/code-server"): "code-server"} {
		if err := os.WriteFile(filepath.Join(file, "package.json"), []byte(`{"name": "`+name+`"}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := packageRoot(filepath.Join(server, "entry.js")); got != filepath.Join(dir, "node_modules") {
		t.Errorf("the root of a package: %s", got)
	}
	if got := packageRoot(filepath.Join(dir, "bin/code-server")); got != filepath.Join(dir, "bin") {
		t.Errorf("the root without a package: %s", got)
	}
}

// What is mounted in every workspace never contains the home of who runs the server.
func TestPrivateCodeServer(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for root, private := range map[string]bool{home: true, filepath.Dir(home): true, filepath.Join(home, ".local/lib/node_modules"): false, "/opt/code-server": false} {
		if got := (codeServer{root: root}).private(""); got != private {
			t.Errorf("%s is private: %t", root, got)
		}
	}
	if !(codeServer{root: "/srv"}).private("/srv/weir/run") {
		t.Error("the run directory would be mounted")
	}
}

// running waits until a notebook runs, and returns where.
func running(t *testing.T, r *Runtime, state runtime.State) (at models.Endpoint) {
	t.Helper()
	eventually(t, "the notebook runs", func() bool {
		status, err := r.Poll(t.Context(), state)
		at = status.Endpoint
		return err == nil && status.Phase == runtime.PhaseRunning
	})
	return at
}
