package runtime

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The command of a workspace is the program of its server: fetched once, again when it has changed, kept
// while the server is silent, and never half of one.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "weir")
	if err := os.WriteFile(script, []byte(Command), 0o700); err != nil {
		t.Fatal(err)
	}
	program, tag, sent, refusal, cut := "#!/bin/sh\necho one \"$@\"\nexit 3\n", `"1-a"`, 0, 0, false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer weirw_7_secret" || r.URL.Path != "/weir" || r.URL.Query().Get("machine") == "":
			t.Errorf("it asks for %s", r.URL)
		case refusal != 0:
			w.WriteHeader(refusal)
			_, _ = w.Write([]byte(`{"detail":"no program for this machine"}`))
			return
		case cut:
			w.Header().Set("Content-Length", "1000")
		}
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") != tag {
			sent++
		}
		if cut {
			_, _ = w.Write([]byte(program))
			return
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(program))
	}))
	defer server.Close()
	run := func(api string) (string, int) {
		c := exec.CommandContext(t.Context(), "/usr/bin/env", "python3", script, "run", "--", "a b")
		c.Env = append(os.Environ(), "TMPDIR="+dir, "WEIR_API="+api, "WEIR_API_TOKEN=weirw_7_secret", "http_proxy=http://192.0.2.1:1")
		out, _ := c.CombinedOutput()
		return strings.TrimSpace(string(out)), c.ProcessState.ExitCode()
	}
	expect := func(when, api, says string, exit, fetched int) {
		t.Helper()
		out, code := run(api)
		files, err := os.ReadDir(filepath.Join(dir, "weir-command"))
		if !strings.Contains(out, says) || code != exit || sent != fetched || err == nil && len(files) > 1 {
			t.Errorf("%s: exit code %d, fetched %d times, files %v, %v\n%s", when, code, sent, files, err, out)
		}
	}
	expect("without a server", "", "WEIR_API is not set", 1, 0)
	refusal = http.StatusConflict
	expect("refused", server.URL, "no program for this machine", 1, 0)
	refusal, cut = 0, true
	expect("cut off", server.URL, "too early", 1, 1)
	cut = false
	expect("the first time", server.URL, "one run -- a b", 3, 2)
	expect("the second time", server.URL, "one run -- a b", 3, 2)
	program, tag = "#!/bin/sh\necho two\n", `"2-b"`
	expect("a new one", server.URL, "two", 0, 3)
	expect("the server is gone", "http://127.0.0.1:1", "two", 0, 3)
	refusal = http.StatusUnauthorized
	expect("refused later", server.URL, "two", 0, 3)
}
