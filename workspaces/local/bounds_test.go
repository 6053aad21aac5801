package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/workspaces/runtime"
)

// A directory that is deeper than the descriptors of this process are many is deleted, with files
// that nobody may read and names that meet.
func TestRemoveDeepTree(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	if err := os.Mkdir(top, 0o700); err != nil {
		t.Fatal(err)
	}
	script := `import os, sys
os.chdir(sys.argv[1])
for i in range(5000):
    open("file", "w").close()
    os.mkdir("d" * 200)
    os.mkdir("closed")
    os.chmod("closed", 0)
    os.chdir("d" * 200)`
	if out, err := exec.Command("python3", "-c", script, top).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = min(before.Cur, 1000)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &before)
	if err := removeTree(t.Context(), top); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(top); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
}

// Stopping a workspace does not wait until everything that it has left is deleted, and the next
// server deletes what this one has not.
func TestLeftoversAreDeleted(t *testing.T) {
	c := config(t.TempDir())
	left := filepath.Join(c.Dir, gonePrefix+"X")
	if err := os.MkdirAll(filepath.Join(left, "a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := open(t, c)
	state := start(t, r, scriptSpec(1, "mkdir -p /run/weir/a/b/c; exec sleep 600"))
	eventually(t, "it has ended", func() bool {
		if err := r.Stop(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		return poll(t, r, state).Phase == runtime.PhaseExited
	})
	eventually(t, "nothing is left", func() bool {
		entries, err := os.ReadDir(r.config.Dir)
		return err == nil && len(entries) == 0
	})
}

// A sandbox cannot fill the disk by the directories that it shares with the server.
func TestSharedDirectoriesAreBounded(t *testing.T) {
	for name, script := range map[string]string{
		"bytes": "fallocate --length 100M /run/weir/large; exec sleep 600",
		"files": "for i in $(seq 1100); do : > /run/weir-kernels/$i; done; exec sleep 600",
		"depth": "cd /run/weir; for i in $(seq 10); do mkdir $(printf %0200d 0); cd $(printf %0200d 0); done; exec sleep 600",
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, config(t.TempDir()))
			state := start(t, r, scriptSpec(1, script))
			eventually(t, "it has ended", func() bool { return poll(t, r, state).Phase == runtime.PhaseExited })
			if s := poll(t, r, state); !strings.Contains(s.Message.String(), "It was killed: more than 64 MiB or 1000 files, or closed or deep directories, were in /run/weir and") {
				t.Error(s.Message)
			}
		})
	}
}

// What becomes something else while the server looks neither blocks it nor leads it elsewhere.
func TestSharedDirectoryThatChanges(t *testing.T) {
	in := &instance{dir: t.TempDir()}
	elsewhere := t.TempDir()
	for _, dir := range []string{in.shared(), elsewhere + "/d"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(in.shared(), "link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(in.shared(), "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	top, err := os.OpenRoot(in.shared())
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	for _, name := range []string{"link", "fifo"} {
		if entries, err := readSome(top, name, 10); err == nil || len(entries) > 0 {
			t.Errorf("%s is read as a directory: %v", name, entries)
		}
	}
	if in.overfull() {
		t.Error("a link and a pipe are more than it may keep")
	}
	if err := removeTree(t.Context(), in.shared()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(elsewhere + "/d"); err != nil {
		t.Errorf("what a link leads to: %v", err)
	}
}

// A process can make its command line as long as it likes.
func TestLongCommandLine(t *testing.T) {
	cmd := exec.Command("sh", "-c", "echo; read x", strings.Repeat("x", 100_000))
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer stdin.Close()
	if _, err := stdout.Read(make([]byte, 1)); err != nil { // a process that has just started has no command line yet
		t.Fatal(err)
	}
	b, err := readCommandLine(cmd.Process.Pid)
	if err != nil || len(b) < 1000 || len(b) > 2*maxCommandLine {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if m, err := markOf(cmd.Process.Pid); err != nil || m != (mark{}) {
		t.Error(fmt.Sprint(m, err))
	}
}
