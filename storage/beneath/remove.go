package beneath

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

const (
	// maxRemoved is how many levels of a tree are open at a time.
	maxRemoved = 100
	// maxRemovals bounds the attempts to remove a directory in which somebody creates
	// files meanwhile.
	maxRemovals = 10_000
)

// RemoveAll removes an entry with everything below it. It is no error if there is none.
// What is too deep is first moved up.
func (d *Dir) RemoveAll(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	for range maxRemovals {
		err := unix.Unlinkat(d.fd(), name, 0)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		top, openErr := d.openToRemove(name)
		if openErr != nil {
			return d.fail("remove", name, err)
		}
		if err := errors.Join(top.empty(top, 0), top.Close()); err != nil {
			return err
		}
		err = unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR)
		if !errors.Is(err, unix.ENOTEMPTY) {
			return d.fail("remove", name, err)
		}
	}
	return d.fail("remove", name, unix.ENOTEMPTY)
}

// empty removes what is in a directory below top. Directories can remain.
func (d *Dir) empty(top *Dir, depth int) error {
	for batch, err := range d.Names() {
		if err != nil {
			return err
		}
		for _, name := range batch {
			if err := d.removeIn(top, name, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Dir) removeIn(top *Dir, name string, depth int) error {
	if err := unix.Unlinkat(d.fd(), name, 0); err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	info, err := d.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && depth == maxRemoved {
		err = d.Rename(name, top, fmt.Sprintf(".deep-%d", info.Inode))
		if errors.Is(err, fs.ErrExist) {
			return nil // tried again when this one is removed
		}
		return err
	}
	sub, err := d.openToRemove(name)
	if err != nil {
		return err
	}
	if err := errors.Join(sub.empty(top, depth+1), sub.Close()); err != nil {
		return err
	}
	if err := unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR); !errors.Is(err, unix.ENOTEMPTY) {
		return d.fail("remove", name, err)
	}
	return nil
}

// openToRemove opens a directory to remove what is in it. Programs also make directories that their own
// user cannot change, as Go does with its module cache: their owner may still remove them.
func (d *Dir) openToRemove(name string) (*Dir, error) {
	sub, err := d.Dir(name)
	if errors.Is(err, fs.ErrPermission) && d.makeUsable(name) == nil {
		sub, err = d.Dir(name)
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if unix.Fstat(sub.fd(), &st) == nil && st.Mode&ownerAll != ownerAll {
		_ = unix.Fchmod(sub.fd(), st.Mode&0o7777|ownerAll) // what it was for fails, and says so
	}
	return sub, nil
}

const ownerAll = 0o700

// makeUsable gives a directory that cannot be opened all permissions for its owner.
func (d *Dir) makeUsable(name string) error {
	fd, err := unix.Openat(d.fd(), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmodat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), ownerAll, 0)
}
