package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"weir/tools/openapi"
)

// generate is a directory in which a client of the document of a server is made.
type generate struct {
	*testing.T
	dir string
}

// copies copies files into the directory.
func (g generate) copies(files ...string) {
	g.Helper()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			g.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(g.dir, filepath.Base(file)), text, 0o600); err != nil {
			g.Fatal(err)
		}
	}
}

// run runs a program in the directory and returns what it prints.
func (g generate) run(env []string, argv ...string) string {
	g.Helper()
	cmd := exec.CommandContext(g.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = g.dir, append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		g.Fatalf("%s: %v\n%s%s", strings.Join(argv, " "), err, out, &stderr)
	}
	return string(out)
}

// goClient makes a client by oapi-codegen.
func (g generate) goClient() (argv []string) {
	g.copies("../tools/oapi-codegen/go.mod", "../tools/oapi-codegen/go.sum", "testdata/clients/oapi-codegen.yaml", "testdata/clients/main.go")
	module := []string{"GOFLAGS=" + os.Getenv("GOFLAGS") + " -mod=mod", "GOWORK=off"}
	g.run(module, "go", "tool", "oapi-codegen", "-config", "oapi-codegen.yaml", "openapi.json")
	g.run(module, "go", "build", "-o", "client", ".")
	return []string{filepath.Join(g.dir, "client")}
}

// typescriptClient makes a client by openapi-typescript, which openapi-fetch uses.
func (g generate) typescriptClient() (argv []string) {
	tools, err := openapi.Install(g.Context())
	if errors.Is(err, openapi.ErrUnreachable) {
		g.Skip(err)
	}
	if err != nil {
		g.Fatal(err)
	}
	g.copies("testdata/clients/client.ts", "testdata/clients/tsconfig.json")
	if err := os.WriteFile(filepath.Join(g.dir, "package.json"), []byte(`{"type": "module"}`), 0o600); err != nil {
		g.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(tools, "node_modules"), filepath.Join(g.dir, "node_modules")); err != nil {
		g.Fatal(err)
	}
	g.run(nil, openapi.Program(tools, "openapi-typescript"), "openapi.json", "--output", "schema.d.ts")
	g.run(nil, openapi.Program(tools, "tsc"), "--project", ".")
	return []string{"node", "client.js"}
}

// Clients that others generate from the document compile, and launch workspaces that run.
func TestGeneratedClients(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	team := s.team("clients", share.times(2), "ada")
	ada := team.Members[0]
	_, document, err := ada.raw("GET", "/openapi.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]func(generate) []string{"go": generate.goClient, "typescript": generate.typescriptClient} {
		t.Run(name, func(t *testing.T) {
			g := generate{t, t.TempDir()}
			if err := os.WriteFile(filepath.Join(g.dir, "openapi.json"), document, 0o600); err != nil {
				t.Fatal(err)
			}
			out := g.run([]string{"WEIR_URL=" + s.url, "WEIR_TOKEN=" + ada.token, "WEIR_PROJECT=" + strconv.FormatInt(team.Project, 10)}, client(g)...)
			id, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
			if err != nil {
				t.Fatalf("the client printed %q", out)
			}
			if w := ada.workspace(id); w.Name != name || w.State != "running" {
				t.Errorf("launched: %+v", w)
			}
			if got := ada.open(id).execute("print(6*7)"); got != "42\n" {
				t.Errorf("the cell printed %q", got)
			}
		})
	}
}
