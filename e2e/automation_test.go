package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// automation is a page whose blocks TestAutomation runs.
const automation = "docs/automation.md"

// everyLocalhost makes Python find all names below localhost, as browsers and curl do.
const everyLocalhost = `import socket
find = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **named: find("127.0.0.1" if str(host).endswith(".localhost") else host, *rest, **named)
`

// The document on automation does what it says, with a real Jupyter.
func TestAutomation(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		s := newServer(t, o)
		s.teamWithin("vision", share.times(2), share, "ada")
		manager := s.manager(1)
		dir := t.TempDir()
		jupyter, err := exec.LookPath("jupyter")
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{"sitecustomize.py": everyLocalhost,
			"python3": "#!/bin/sh\nexec " + filepath.Join(filepath.Dir(jupyter), "python3") + " \"$@\"\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		page, err := os.ReadFile("../" + automation)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "-c", script(automation, runnableBlocks(string(page))))
		cmd.Dir = dir
		cmd.Env = environment([]string{"WEIR_URL=" + s.url, "WEIR_TOKEN=" + manager, "PYTHONPATH=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")})
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, want := range []string{"service nightly in vision", "nightly is running at http", "the notebook printed 42"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("the blocks do not print %q:\n%s", want, out)
			}
		}
		all := list[workspace](s.api(s.admin()), "/workspaces?state=all")
		if len(all) != 1 || all[0].State != "stopped" {
			t.Errorf("%+v", all)
		}
	})
}

// manager is a token of someone who manages a project, with the scopes that the document names.
func (s *server) manager(project int64) string {
	s.t.Helper()
	admin, at := s.api(s.admin()), fmt.Sprintf("/projects/%d", project)
	var role id
	admin.must("POST", at+"/roles", map[string]any{"name": "lead", "permission": "manager", "limit": resources{}}, &role)
	admin.must("POST", "/users", map[string]any{"email": "mia@example.org", "name": "Mia", "password": password}, nil)
	admin.must("POST", at+"/members", map[string]any{"email": "mia@example.org", "role_id": role.ID}, nil)
	code, stdout, stderr := weir(s.t, "", s.settings(), "admin", "create-token", "--email", "mia@example.org", "--name", "docs", "--scopes", "project,launch")
	if code != 0 {
		s.t.Fatalf("create-token: exit code %d\n%s", code, stderr)
	}
	return strings.TrimSpace(stdout)
}
