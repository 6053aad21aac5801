package beneath

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Their owner removes directories that it cannot change, or not even open.
func TestRemoveAllOfReadOnlyDirectories(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"tree/module/inner", "tree/closed"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "file"), []byte("x"), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err == nil && os.Geteuid() == 0 {
			err = os.Lchown(path, 65534, 65534)
		}
		return err
	})
	for dir, mode := range map[string]os.FileMode{"tree/module/inner": 0o555, "tree/module": 0o555, "tree/closed": 0} {
		if err == nil {
			err = os.Chmod(filepath.Join(root, dir), mode)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(root, dirFlags, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := newDir(fd, root, Owner{})
	defer d.Close()
	if os.Geteuid() == 0 { // the thread loses what root may do to files
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Setfsuid(0) }()
		if _, err := unix.Openat(fd, "tree/module/new", unix.O_CREAT|unix.O_WRONLY, 0o644); err == nil {
			t.Fatal("the directory can be changed without its mode")
		}
	}
	if err := d.RemoveAll("tree"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Stat("tree"); err == nil {
		t.Error("the tree is there")
	}
}
