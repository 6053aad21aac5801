package runtimetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"weir/models"
)

// NeedsCodeServer skips a test where “tools/setup test” could not install code-server, as with another
// version of Node, and has said so.
func NeedsCodeServer(t *testing.T) {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{models.CodeServer, filepath.Join(home, ".local/bin", models.CodeServer)} {
		if _, err := exec.LookPath(program); err == nil {
			return
		}
	}
	t.Skip("code-server is not installed; “make code-server” installs it")
}
