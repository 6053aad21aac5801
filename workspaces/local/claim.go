package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"weir/workspaces/runtime"
)

// ownerFile in a run directory has the mark of its owner.
const ownerFile = "owner"

// claim makes dir the run directory of owner. What another owner has there is moved beside
// it as it is, so that the two do not meet in files; it returns when its owner does. Its
// processes run on.
func claim(dir string, owner runtime.Owner) error {
	if owner == (runtime.Owner{}) {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(dir, ownerFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	mark := strings.TrimSpace(string(b))
	former := cmp.Or(mark, owner.First().String())
	partial := filepath.Join(dir, ownerFile+newSuffix) // of a server that was killed
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	own := aside(dir, owner.String())
	_, err = os.Lstat(own)
	switch {
	case former != owner.String() || len(entries) == 0 && err == nil:
		if err := swap(dir, aside(dir, former), own, len(entries) == 0); err != nil {
			return err
		}
	case mark == owner.String():
		return nil
	}
	err = replaceFile(filepath.Join(dir, ownerFile), []byte(owner.String()+"\n"))
	if errors.Is(err, unix.ENOSPC) && former == owner.String() { // a server also starts on a full disk, and writes it later
		return nil
	}
	return err
}

// aside is where the run directory of an owner is while another has its place.
func aside(dir, owner string) string { return fmt.Sprintf("%s.%s", dir, owner) }

// swap moves dir to former, or removes it if it is empty, and puts own in its place, or an
// empty directory.
func swap(dir, former, own string, empty bool) error {
	leave := func() error { return os.Rename(dir, former) }
	if empty {
		leave = func() error { return os.Remove(dir) }
	}
	if err := leave(); err != nil {
		return err
	}
	if err := os.Rename(own, dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Mkdir(dir, 0o711)
}
