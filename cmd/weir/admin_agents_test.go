package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/cmd/weir/cli"
	"weir/pool/authority"
)

// The authority's certificate can be had before there is a portal, and without
// its key.
func TestAuthorityCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "d", "authority.pem")
	print := func() []byte {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := weir([]string{"admin", "authority", "--authority-file", file}, &out, &errOut); code != cli.ExitOK {
			t.Fatalf("exit code %d: %s", code, errOut.String())
		}
		return out.Bytes()
	}
	first := print()
	if again := print(); !bytes.Equal(first, again) || bytes.Contains(first, []byte("PRIVATE")) {
		t.Errorf("first\n%s then\n%s", first, again)
	}
	a, err := authority.Open(file, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if known, err := authority.FingerprintOf(first); err != nil || known != a.Fingerprint() {
		t.Errorf("%x, %v", known, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
