package runtime

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The command of a workspace is the program of its server: fetched once, again when it has changed, kept
// while the server is silent, and never half of one.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "weir")
	own := filepath.Join(dir, "weir-command")
	text := strings.Replace(Command, `DIRECTORY = "/tmp/weir-command"`, `DIRECTORY = "`+own+`"`, 1)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil || text == Command {
		t.Fatal(err)
	}
	program, tag, sent, refusal, cut := "#!/bin/sh\necho one \"$@\"\nexit 3\n", `"1-a"`, 0, 0, false
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
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
		c.Env = append(os.Environ(), "WEIR_API="+api, "WEIR_API_TOKEN=weirw_7_secret", "http_proxy=http://192.0.2.1:1")
		out, _ := c.CombinedOutput()
		return strings.TrimSpace(string(out)), c.ProcessState.ExitCode()
	}
	expect := func(when, api, says string, exit, fetched int) {
		t.Helper()
		out, code := run(api)
		files, err := os.ReadDir(own)
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
	refusal, program, tag = 0, "#!/bin/sh\necho three\n", `"3-c"`
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if out, code := run(server.URL); out != "three" || code != 0 {
				t.Errorf("several at once: exit code %d\n%s", code, out)
			}
		})
	}
	group.Wait()
	program, tag = "no program", `"4-d"`
	expect("no program", server.URL, "does not start here", 1, 5)
	if err := os.Chmod(own, 0o777); err != nil {
		t.Fatal(err)
	}
	expect("somebody else's directory", server.URL, "not a directory of this user alone", 1, 5)
}
