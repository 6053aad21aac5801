package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/models/store/storetest"
)

// before is what the reader of a page already has, as a script.
var before = map[string]string{
	"docs/tutorial/engineer.md":            aServer + aMember,
	"docs/tutorial/engineer.zh.md":         aServer + aMember,
	"docs/how-to/migrate-to-postgresql.md": aServer + aMember + "kill $server && wait $server\n",
	"docs/how-to/backup.md":                aServer + aMember,
	"docs/reference/api.md":                aServer + aMember,
	"docs/how-to/upgrade.md":               "weir migrate --data-dir ./data\n",
}

const (
	awaitReady = "until curl --silent --fail http://localhost:8080/readyz; do kill -0 $!; sleep 1; done\n"

	aServer = "weir serve --data-dir ./data --simulate-gpus h100:8 >server.log 2>&1 &\nserver=$!\n" + awaitReady

	aMember = `weir admin create-user --data-dir ./data --email ada@example.org --name Ada --admin --password-stdin <<<'choose a long password'
export WEIR_URL=http://localhost:8080 WEIR_TOKEN=$(weir admin create-token --data-dir ./data --email ada@example.org --name test)
curl --silent --show-error --fail -H "Authorization: Bearer $WEIR_TOKEN" -H 'Content-Type: application/json' \
	-d '{"name": "Vision", "members": 2}' $WEIR_URL/api/v1/projects/start
`
)

// block is a fenced block of a page that is marked as runnable.
type block struct {
	line       int
	language   string
	background bool // runs until the end of the page
	code       string
}

var blockPattern = regexp.MustCompile("(?ms)^([ \t]*)```(bash|python) runnable( background)?\n(.*?)^[ \t]*```$")

func runnableBlocks(page string) (list []block) {
	for _, at := range blockPattern.FindAllStringSubmatchIndex(page, -1) {
		part := func(n int) string {
			if at[2*n] < 0 {
				return ""
			}
			return page[at[2*n]:at[2*n+1]]
		}
		var code strings.Builder
		for line := range strings.Lines(part(4)) {
			code.WriteString(strings.TrimPrefix(line, part(1)))
		}
		list = append(list, block{strings.Count(page[:at[0]], "\n") + 1, part(2), part(3) != "", code.String()})
	}
	return list
}

// script runs the blocks of a page in order in one shell, as a reader does.
func script(page string, blocks []block) string {
	var s strings.Builder
	s.WriteString("set -euo pipefail\n" + before[page])
	for _, b := range blocks {
		fmt.Fprintf(&s, "echo '--- %s:%d'\n", page, b.line)
		switch {
		case b.language == "python":
			fmt.Fprintf(&s, "python3 - <<'END_OF_BLOCK'\n%sEND_OF_BLOCK\n", b.code)
		case b.background:
			fmt.Fprintf(&s, "{\n%s} </dev/null >background.log 2>&1 &\n%s", b.code, awaitReady)
		default:
			s.WriteString(b.code)
		}
	}
	return s.String()
}

// TestDocs runs the blocks of the README and of the documentation that are marked as
// runnable, literally and in order.
func TestDocs(t *testing.T) {
	t.Parallel()
	pages := map[string]int{}
	for _, page := range documentation(t) {
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		blocks := runnableBlocks(string(text))
		if marked := strings.Count(string(text), " runnable"+"\n") + strings.Count(string(text), " runnable background\n"); marked != len(blocks) {
			t.Errorf("%s marks %d blocks as runnable, but only %d can be read", page, marked, len(blocks))
		}
		if pages[page] = len(blocks); len(blocks) > 0 && page != automation {
			t.Run(page, func(t *testing.T) { runPage(t, page, script(page, blocks)) })
		}
	}
	for page := range before {
		if pages[page] == 0 {
			t.Errorf("%s has no runnable block", page)
		}
	}
}

// documentation lists the README and all pages, relative to the repository.
func documentation(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md"}
	err := filepath.WalkDir("../docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, strings.TrimPrefix(filepath.ToSlash(path), "../"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// runPage runs a script in a folder of its own, and in namespaces: the ports that the
// page names are free, and what it started ends with it. Of PostgreSQL it has a
// superuser's access, as the page says.
func runPage(t *testing.T, page, script string) {
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if page == "README.md" {
		copyTree(t, dir)
	}
	database, err := url.Parse(storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	superuser := []string{"PGHOST=" + database.Query().Get("host"), "PGUSER=postgres", "PGSSLMODE=disable"}
	t.Cleanup(func() {
		drop := exec.Command("psql", "--dbname", "postgres", "--command", "DROP DATABASE IF EXISTS weir WITH (FORCE)", "--command", "DROP ROLE IF EXISTS weir")
		drop.Env = append(os.Environ(), superuser...)
		if out, err := drop.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := inNamespaces(ctx, script)
	cmd.Dir = dir
	cmd.Env = environment(append(superuser, "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH")))
	if out, err := cmd.CombinedOutput(); err != nil {
		logs, _ := exec.Command("bash", "-c", `tail --lines 20 "$0"/*.log`, dir).Output()
		t.Fatalf("%v\n%s\n%s", err, out, logs)
	}
}

// inNamespaces is a shell with its own network, which has only a loopback interface, and
// its own processes. Without root it is in a user namespace, too.
func inNamespaces(ctx context.Context, script string) *exec.Cmd {
	args := []string{"--net", "--pid", "--fork", "--kill-child", "--mount-proc"}
	shell := "ip link set lo up && exec "
	if os.Geteuid() != 0 {
		args = append(args, "--user", "--map-current-user", "--keep-caps")
		shell += "setpriv --inh-caps=-all --ambient-caps=-all "
	}
	return exec.CommandContext(ctx, "unshare", append(args, "bash", "-c", shell+`bash -c "$0"`, script)...)
}

// copyTree copies what git tracks, and new files, to dir.
func copyTree(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", `set -o pipefail; git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- --ignore-failed-read | tar --extract --directory "$0"`, dir)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
