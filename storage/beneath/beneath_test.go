package beneath

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// share is a root with a canary outside of it.
type share struct {
	*Root
	path, outside string
}

const canary = "the canary"

func newShare(t testing.TB) *share {
	t.Helper()
	dir := t.TempDir()
	s := &share{path: filepath.Join(dir, "share"), outside: filepath.Join(dir, "outside")}
	if err := errors.Join(os.Mkdir(s.path, 0o755), os.Mkdir(s.outside, 0o755), os.WriteFile(filepath.Join(s.outside, "canary"), []byte(canary), 0o644)); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.Root, err = OpenRoot(s.path, Owner{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// unharmed checks that nothing outside the root has changed.
func (s *share) unharmed(t testing.TB) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.outside, "canary"))
	names, err2 := os.ReadDir(s.outside)
	if err != nil || err2 != nil || string(content) != canary || len(names) != 1 {
		t.Fatalf("outside: %q, %v, %v, %v", content, names, err, err2)
	}
}

func (s *share) dir(t testing.TB, path string) *Dir {
	t.Helper()
	d, err := s.Dir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func (s *share) at(path string) string { return filepath.Join(s.path, path) }

// eachWay runs a test with openat2 and without.
func eachWay(t *testing.T, test func(t *testing.T)) {
	t.Run("openat2", test)
	t.Run("openat", func(t *testing.T) {
		noOpenat2.Store(true)
		defer noOpenat2.Store(false)
		test(t)
	})
}

func TestNoPathLeadsOut(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		s := newShare(t)
		if err := errors.Join(os.MkdirAll(s.at("a/b"), 0o755), os.Symlink(s.outside, s.at("a/link")), os.Symlink("../../outside", s.at("a/relative")),
			os.Symlink("/proc/self/root", s.at("a/magic")), os.Symlink("b", s.at("a/inside"))); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"..", ".", "a/..", "a/../..", "/", "/etc", "a//b", "a/b/", "a/./b", "../share", "../outside", "a\x00", "a/\x00", "a/link", "a/relative",
			"a/magic", "a/inside", "a/link/.", "a/none", strings.Repeat("a/", 3000) + "b", strings.Repeat("x", 256)} {
			if d, err := s.Dir(path); err == nil {
				t.Errorf("%q was opened: %v", path, d.Close())
			}
		}
		d := s.dir(t, "a")
		for _, name := range []string{"", ".", "..", "b/..", "/etc/passwd", "link/canary", "a\x00b"} {
			_, _, err1 := d.Open(name)
			_, err2 := d.Create(name)
			_, err3 := d.Mkdir(name)
			_, err4 := d.Stat(name)
			_, err5 := d.Dir(name)
			_, err6 := d.Append(name)
			for i, err := range []error{err1, err2, err3, err4, err5, err6, d.Remove(name), d.RemoveAll(name), d.Rename("b", d, name), d.Rename(name, d, "c"), d.Exchange("b", d, name), d.Replace("b", d, name), d.Link("b", d, name)} {
				if !errors.Is(err, ErrName) {
					t.Errorf("%q, call %d: %v", name, i+1, err)
				}
			}
		}
		for _, link := range []string{"link", "relative", "magic", "inside"} {
			if _, _, err := d.Open(link); !errors.Is(err, ErrIrregular) {
				t.Errorf("open %s: %v", link, err)
			}
			if info, err := d.Stat(link); err != nil || info.Kind != Irregular {
				t.Errorf("stat %s: %+v, %v", link, info, err)
			}
			if _, err := d.Create(link); !errors.Is(err, fs.ErrExist) {
				t.Errorf("create %s: %v", link, err)
			}
			if err := d.RemoveAll(link); err != nil {
				t.Errorf("remove %s: %v", link, err)
			}
		}
		if _, err := os.Stat(s.at("a/b")); err != nil {
			t.Error("the target of a link was removed")
		}
		s.unharmed(t)
	})
}

// What is no regular file with one link is not opened, and nothing blocks.
func TestIrregularFiles(t *testing.T) {
	s := newShare(t)
	inside := filepath.Join(s.path, "file")
	socket, err := net.Listen("unix", s.at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := errors.Join(os.WriteFile(inside, []byte("x"), 0o644), os.Link(inside, s.at("second")), os.Link(filepath.Join(s.outside, "canary"), s.at("hard")),
		unix.Mkfifo(s.at("fifo"), 0o644)); err != nil {
		t.Fatal(err)
	}
	names := []string{"file", "second", "hard", "fifo", "socket"}
	if os.Geteuid() == 0 {
		if err := unix.Mknod(s.at("device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
			t.Fatal(err)
		}
		names = append(names, "device")
	}
	d := s.dir(t, "")
	for _, name := range names {
		if _, _, err := d.Open(name); !errors.Is(err, ErrIrregular) {
			t.Errorf("open %s: %v", name, err)
		}
		if f, err := d.Append(name); err == nil {
			t.Errorf("append to %s: %v", name, f.Close())
		}
		if info, err := d.Stat(name); err != nil || info.Kind != Irregular {
			t.Errorf("%+v, %v", info, err)
		}
	}
	if err := d.Remove("second"); err != nil {
		t.Fatal(err)
	}
	f, info, err := d.Open("file")
	if err != nil || info.Size != 1 || info.Kind != Regular {
		t.Fatalf("%+v, %v", info, err)
	}
	f.Close()
	s.unharmed(t)
}

func TestChanges(t *testing.T) {
	s := newShare(t)
	d := s.dir(t, "")
	sub, err := d.Mkdir("sub\xff\n")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	f, err := sub.Create("a")
	if err == nil {
		_, err = f.WriteString("new")
	}
	if err := errors.Join(err, f.Sync(), f.Close(), sub.Sync()); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(s.at("sub\xff\n/a")); err != nil || st.Mode() != 0o664 {
		t.Errorf("%v, %v", st, err)
	}
	if f, err := sub.Append("a"); err != nil {
		t.Error(err)
	} else if _, err := f.WriteString("er"); errors.Join(err, f.Close()) != nil {
		t.Error(err)
	}
	if _, err := sub.Create("a"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created twice: %v", err)
	}
	if err := os.WriteFile(s.at("b"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	read := func(d *Dir, name string) string {
		t.Helper()
		f, _, err := d.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		content, _ := io.ReadAll(f)
		return string(content)
	}
	if err := sub.Rename("a", d, "b"); !errors.Is(err, fs.ErrExist) || read(d, "b") != "old" {
		t.Errorf("overwritten: %v", err)
	}
	if err := sub.Exchange("a", d, "b"); err != nil || read(d, "b") != "newer" || read(sub, "a") != "old" {
		t.Errorf("exchanged: %v", err)
	}
	if err := sub.Replace("a", d, "b"); err != nil || read(d, "b") != "old" {
		t.Errorf("replaced: %v", err)
	}
	if err := d.Rename("b", sub, "c"); err != nil || read(sub, "c") != "old" {
		t.Errorf("moved: %v", err)
	}
	var names []string
	for batch, err := range sub.Names() {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, batch...)
	}
	if !slices.Equal(names, []string{"c"}) {
		t.Errorf("%q", names)
	}
	if err := errors.Join(d.RemoveAll("sub\xff\n"), d.RemoveAll("sub\xff\n")); err != nil {
		t.Error(err)
	}
	if _, err := d.Stat("sub\xff\n"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// swapper is another process that swaps a directory and a symbolic link to the outside,
// and a file and one to the canary, until its input ends.
const swapper = `
import ctypes, os, select, sys
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(sys.argv[1])
def swap(a, b):
    libc.renameat2(-100, a, -100, b, 2)
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(100):
        swap(b"a/dir", b"a/dirlink")
        swap(b"a/file", b"a/filelink")
        swap(b"a/dir/x", b"a/moved")
`

func TestSwapsByAnotherProcess(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		s := newShare(t)
		if err := errors.Join(os.MkdirAll(s.at("a/dir/x"), 0o755), os.Mkdir(s.at("a/moved"), 0o755), os.WriteFile(s.at("a/file"), []byte("inside"), 0o644),
			os.Symlink(s.outside, s.at("a/dirlink")), os.Symlink(filepath.Join(s.outside, "canary"), s.at("a/filelink"))); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("python3", "-c", swapper, s.path)
		stdin, err1 := cmd.StdinPipe()
		stdout, err2 := cmd.StdoutPipe()
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(stdout, make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		opened, refused := 0, 0
		for i := 0; i < 200_000 && (i < 3000 || opened < 200 || refused < 200); i++ {
			if s.attempt(t) {
				opened++
			} else {
				refused++
			}
		}
		if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
		if opened < 200 || refused < 200 {
			t.Errorf("%d attempts met the directory and %d the link: nothing was raced", opened, refused)
		}
		s.unharmed(t)
	})
}

// attempt reads and writes at paths that are swapped. It reports whether the directory
// was there.
func (s *share) attempt(t *testing.T) bool {
	t.Helper()
	a := s.dir(t, "a")
	defer a.Close()
	if f, _, err := a.Open("file"); err == nil {
		content, _ := io.ReadAll(f)
		f.Close()
		if !bytes.Equal(content, []byte("inside")) {
			t.Fatalf("read %q", content)
		}
	}
	d, err := s.Dir("a/dir")
	if err != nil {
		return false
	}
	defer d.Close()
	if f, _, err := d.Open("canary"); err == nil {
		f.Close()
		t.Fatal("the canary was opened")
	}
	if f, err := d.Create("canary2"); err == nil {
		f.Close()
		if err := d.Remove("canary2"); err != nil {
			t.Fatal(err)
		}
	}
	return true
}

// FuzzDir resolves any path: what is opened is below the root, and only if the names
// lead there.
func FuzzDir(f *testing.F) {
	s := newShare(f)
	if err := errors.Join(os.MkdirAll(s.at("a/b/\xff"), 0o755), os.Symlink(s.outside, s.at("a/link"))); err != nil {
		f.Fatal(err)
	}
	for _, path := range []string{"", "a", "a/b", "a/b/\xff", "a/link", "..", "a/../..", "/a", "a/", "a//b", "a/./b", "a\x00", "%2e%2e/outside", "a/b/..", "..\\outside", "a/link/../share"} {
		f.Add(path)
	}
	known := map[string]bool{"": true, "a": true, "a/b": true, "a/b/\xff": true}
	f.Fuzz(func(t *testing.T, path string) {
		d, err := s.Dir(path)
		if err != nil {
			if known[path] {
				t.Fatalf("%q: %v", path, err)
			}
			return
		}
		defer d.Close()
		where, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(d.fd()))
		if err != nil || where != filepath.Clean(s.path+"/"+path) || !known[path] {
			t.Fatalf("%q is %q, %v", path, where, err)
		}
	})
}
