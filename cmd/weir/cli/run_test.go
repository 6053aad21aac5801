package cli

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"weir/handlers"
)

// cobra alone would show a group's help and succeed.
func TestGroupRefusesAnUnknownCommand(t *testing.T) {
	root, group, ran := &cobra.Command{Use: "weir", SilenceErrors: true, SilenceUsage: true}, &cobra.Command{Use: "group"}, false
	group.AddCommand(&cobra.Command{Use: "known", Run: func(*cobra.Command, []string) {}})
	root.AddCommand(group)
	root.SetOut(io.Discard)
	prepare(root, &ran)
	for args, ok := range map[string]bool{"group": true, "group known": true, "group nosuch": false} {
		root.SetArgs(strings.Fields(args))
		if err := root.Execute(); (err == nil) != ok {
			t.Errorf("weir %s: %v", args, err)
		}
	}
}

// Inside a workspace, a run begins in the current directory, but for /tmp, of which each has its own; elsewhere only in
// one that is named.
func TestDirectoryOfARun(t *testing.T) {
	p := newFakeServer(t, map[string]http.HandlerFunc{"POST /runs": jsonAnswer(handlers.Run{ID: 7})})
	dir := t.TempDir()
	t.Chdir(dir)
	if code, _, errOut := p.weir(t, "run", "--detach", "--project", "1", "--", "true"); code != 0 || strings.Contains(last(p.requests()), "directory") {
		t.Errorf("exit code %d, %q after %s", code, errOut, last(p.requests()))
	}
	p.weir(t, "run", "--detach", "--project", "1", "--directory", "/notebook/1", "--", "true")
	if got := last(p.requests()); !strings.Contains(got, `"directory":"/notebook/1"`) {
		t.Errorf("it asks for %s", got)
	}
	for _, c := range [][3]string{{dir, "", ""}, {dir, "--directory sub", dir + "/sub"}, {dir, "--directory /notebook/1", "/notebook/1"}, {"/usr/lib", "", "/usr/lib"}} {
		at, args, want := c[0], c[1], c[2]
		t.Chdir(at)
		cmd := newRunCommand()
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		f := runFlags{project: 1, directory: cmd.Flag("directory").Value.String()}
		if in, err := f.input(&session{inside: true}, cmd.Flags(), []string{"true"}); err != nil || in.Directory != want {
			t.Errorf("%q in %s asks for the directory %q, %v", args, at, in.Directory, err)
		}
	}
}

// A start that was cut off is repeated with the same key; one that was answered is not.
func TestStartOfARunIsSentOnce(t *testing.T) {
	var keys []string
	p := newFakeServer(t, map[string]http.HandlerFunc{"POST /runs": func(w http.ResponseWriter, r *http.Request) {
		if keys = append(keys, r.Header.Get("Idempotency-Key")); len(keys) == 1 {
			panic(http.ErrAbortHandler)
		}
		jsonAnswer(handlers.Run{ID: 7})(w, r)
	}})
	code, out, errOut := p.weir(t, "run", "--detach", "--project", "1", "--", "true")
	if code != 0 || out != "7\n" || len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("exit code %d, %q %q with the keys %q", code, out, errOut, keys)
	}
	if code, _, _ = p.weir(t, "run", "--detach", "--project", "1", "--", "true"); code != 0 || len(keys) != 3 || slices.Contains(keys[:2], keys[2]) {
		t.Errorf("exit code %d with the keys %q", code, keys)
	}
	busy := newFakeServer(t, map[string]http.HandlerFunc{"POST /runs": problemAnswer(http.StatusServiceUnavailable, "Not now.")})
	if code, _, _ := busy.weir(t, "run", "--detach", "--project", "1", "--", "true"); code != ExitUnreachable || len(busy.requests()) != 1 {
		t.Errorf("exit code %d after %q", code, busy.requests())
	}
}
