package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestExitCodes(t *testing.T) {
	t.Setenv("WEIR_CONFIG", "/does/not/exist")
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"", exitOK, ""},
		{"version", exitOK, ""},
		{"serve --help", exitOK, ""},
		{"nosuch", exitUsage, "nosuch"},
		{"version extra", exitUsage, "extra"},
		{"version --output xml", exitUsage, "xml"},
		{"serve --nosuch", exitUsage, "nosuch"},
		{"serve --listen x", exitUsage, "WEIR_CONFIG: open /does/not/exist"},
	} {
		var out, errOut bytes.Buffer
		code := run(strings.Fields(c.args), &out, &errOut)
		if code != c.code || !strings.Contains(errOut.String(), c.says) {
			t.Errorf("weir %s: exit code %d, want %d; says %s", c.args, code, c.code, errOut.String())
		}
	}
}

// cobra alone would show a group's help and succeed.
func TestGroupRefusesAnUnknownCommand(t *testing.T) {
	root, group, ran := &cobra.Command{Use: "weir", SilenceErrors: true, SilenceUsage: true}, &cobra.Command{Use: "group"}, false
	group.AddCommand(&cobra.Command{Use: "known", Run: func(*cobra.Command, []string) {}})
	root.AddCommand(group)
	root.SetOut(io.Discard)
	noteStart(root, &ran)
	for args, ok := range map[string]bool{"group": true, "group known": true, "group nosuch": false} {
		root.SetArgs(strings.Fields(args))
		if err := root.Execute(); (err == nil) != ok {
			t.Errorf("weir %s: %v", args, err)
		}
	}
}

func TestVersion(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := run([]string{"version", "--output", "json"}, &out, &errOut); code != exitOK {
		t.Fatal(errOut.String())
	}
	var v versionInfo
	if err := json.Unmarshal(out.Bytes(), &v); err != nil || v.Version == "" || v.Go == "" {
		t.Errorf("got %s, %v", out.String(), err)
	}
}
