package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var unitPattern = regexp.MustCompile("(?ms)^   ```ini\n(.*?)^   ```$")

// systemd understands every line of the unit, but for what it says of versions before 254.
func TestUnitOfSystemd(t *testing.T) {
	page, err := files.ReadFile("how-to/systemd.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := unitPattern.FindAllSubmatch(page, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d units", len(blocks))
	}
	unit := strings.ReplaceAll(string(blocks[0][1]), "\n   ", "\n")
	unit = strings.ReplaceAll(strings.TrimPrefix(unit, "   "), "/usr/local/bin/weir", "/bin/true")
	if got := complaints(t, unit); len(got) > 0 {
		t.Errorf("systemd says:\n%s", strings.Join(got, "\n"))
	}
	if got := complaints(t, strings.Replace(unit, "Restart=", "Restarts=", 1)); len(got) != 1 {
		t.Errorf("of a wrong key, systemd says %q", got)
	}
}

// complaints are the lines of systemd-analyze about a unit.
func complaints(t *testing.T, unit string) (list []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.service")
	if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, file) && !strings.Contains(line, "'DelegateSubgroup'") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}
