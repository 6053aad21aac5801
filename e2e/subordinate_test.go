package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asGames runs a program as an ordinary user of the machine, with these subordinate IDs.
const asGames = `mount --bind "$1" /etc/subuid && mount --bind "$1" /etc/subgid && shift && exec setpriv --reuid games --regid games --clear-groups "$@"`

// games starts a server without root and returns its summary. The server ends with the
// test.
func games(t *testing.T, bin, dir, subordinate string) (summary struct {
	Runtime     string   `json:"runtime"`
	NotEnforced []string `json:"not_enforced"`
}, server *exec.Cmd) {
	t.Helper()
	file := filepath.Join(filepath.Dir(dir), "subordinate")
	if err := os.WriteFile(file, []byte(subordinate), 0o644); err != nil {
		t.Fatal(err)
	}
	server = exec.Command("unshare", "--mount", "sh", "-c", asGames, "sh", file, bin, "serve", "--listen", "127.0.0.1:0", "--agents-listen", "", "--data-dir", dir)
	server.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	log := &transcript{}
	server.Stderr = log
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()
	})
	timeout := time.AfterFunc(time.Minute, func() { _ = server.Process.Kill() })
	defer timeout.Stop()
	if err := json.NewDecoder(out).Decode(&summary); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	eventually(t, ready, func() string {
		if !strings.Contains(log.String(), `"msg":"serving"`) {
			return "it does not serve: " + log.String()
		}
		return ""
	})
	return summary, server
}

// namespaceHolder is the process that keeps the user namespace of games, or "".
func namespaceHolder(t *testing.T) (pid string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/uid_map")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file) // of a process that ends meanwhile
		if strings.Join(strings.Fields(string(text)), " ") != "0 5 1 62000 710000 1 1900000000 710001 65535" {
			continue
		}
		if command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "comm")); string(command) == "sleep\n" {
			pid = filepath.Base(filepath.Dir(file))
		}
	}
	return pid
}

// Without root, a server with subordinate IDs gives them to members, also after a
// restart; without any, it says so.
func TestSubordinateIDs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a server as another user")
	}
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	parent, err := os.MkdirTemp("/tmp", "weir-games")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	dir, copied := filepath.Join(parent, "data"), filepath.Join(parent, "weir")
	for _, args := range [][]string{{"chmod", "755", parent}, {"cp", bin, copied}, {"install", "-d", "-o", "games", dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
	}
	const separate = "processes on this machine, with a user for each member"
	summary, server := games(t, copied, dir, "root:1:1\n")
	if said := strings.Join(summary.NotEnforced, "\n"); summary.Runtime == separate || !strings.Contains(said, "/etc/subuid has 0 IDs for user games") {
		t.Errorf("without subordinate IDs: %+v", summary)
	}
	end(t, server)
	holder := ""
	t.Cleanup(func() {
		if pid, err := strconv.Atoi(holder); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	for range 2 {
		summary, server = games(t, copied, dir, "games:710000:65536\ngames:1:2\n")
		if summary.Runtime != separate || !strings.Contains(strings.Join(summary.NotEnforced, "\n"), "fs.inotify.max_user_instances") {
			t.Errorf("with subordinate IDs: %+v", summary)
		}
		first := holder
		if holder = namespaceHolder(t); holder == "" || first != "" && holder != first {
			t.Errorf("the namespace is kept by %q, then by %q", first, holder)
		}
		end(t, server)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(filepath.Join(dir, "shared/notebook"), &st); err != nil || st.Uid != 710000 {
		t.Errorf("the directories belong to %d, %v", st.Uid, err)
	}
}

// end stops a server as a service manager does.
func end(t *testing.T, server *exec.Cmd) {
	t.Helper()
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server ended: %v\n%s", err, server.Stderr)
	}
}
