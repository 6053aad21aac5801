package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"weir/cmd/weir/cli"
)

// weir runs a command line.
func weir(args []string, out, errOut io.Writer) int {
	return cli.Run(newRootCommand(), args, out, errOut)
}

func TestExitCodes(t *testing.T) {
	t.Setenv("WEIR_CONFIG", "/does/not/exist")
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"", cli.ExitOK, ""},
		{"version", cli.ExitOK, ""},
		{"serve --help", cli.ExitOK, ""},
		{"nosuch", cli.ExitUsage, "nosuch"},
		{"version extra", cli.ExitUsage, "extra"},
		{"version --output xml", cli.ExitUsage, "xml"},
		{"serve --nosuch", cli.ExitUsage, "nosuch"},
		{"serve --listen x", cli.ExitUsage, "WEIR_CONFIG: open /does/not/exist"},
	} {
		var out, errOut bytes.Buffer
		code := weir(strings.Fields(c.args), &out, &errOut)
		if code != c.code || !strings.Contains(errOut.String(), c.says) {
			t.Errorf("weir %s: exit code %d, want %d; says %s", c.args, code, c.code, errOut.String())
		}
	}
}

func TestVersion(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := weir([]string{"version", "--output", "json"}, &out, &errOut); code != cli.ExitOK {
		t.Fatal(errOut.String())
	}
	var v versionInfo
	if err := json.Unmarshal(out.Bytes(), &v); err != nil || v.Version == "" || v.Go == "" {
		t.Errorf("got %s, %v", out.String(), err)
	}
}
