package beneath

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Create creates a file that does not exist, for reading and writing.
func (d *Dir) Create(name string) (*os.File, error) {
	fd, err := d.openat("create", name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if err := d.owner.own(fd, 0o664, 0o660); err != nil {
		return nil, errors.Join(d.fail("chown", name, err), f.Close(), d.Remove(name))
	}
	return f, nil
}

// Append opens a file for appending that was created by [Dir.Create].
func (d *Dir) Append(name string) (*os.File, error) {
	fd, err := d.openat("open", name, unix.O_WRONLY|unix.O_APPEND|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || infoOf(name, &st).Kind != Regular {
		return nil, errors.Join(d.fail("open", name, ErrIrregular), err, f.Close())
	}
	return f, nil
}

// Mkdir creates a directory and opens it.
func (d *Dir) Mkdir(name string) (*Dir, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if _, err := retried(func() (int, error) { return 0, unix.Mkdirat(d.fd(), name, 0o700) }); err != nil {
		return nil, d.fail("mkdir", name, err)
	}
	sub, err := d.Dir(name)
	if err != nil {
		return nil, err
	}
	err = d.owner.own(sub.fd(), 0o775, unix.S_ISGID|0o770)
	if err == nil && d.owner.Shared {
		err = sub.Share()
	}
	if err != nil {
		return nil, errors.Join(d.fail("chown", name, err), sub.Close())
	}
	return sub, nil
}

// Rename moves an entry to another directory on the file system. An existing entry is
// an error.
func (d *Dir) Rename(name string, to *Dir, toName string) error {
	err := d.rename(name, to, toName, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	// NFS has no such flag.
	if _, err := to.Stat(toName); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(d.fail("rename", toName, unix.EEXIST), err)
	}
	return d.rename(name, to, toName, 0)
}

// Exchange swaps two entries at once.
func (d *Dir) Exchange(name string, to *Dir, toName string) error {
	return d.rename(name, to, toName, unix.RENAME_EXCHANGE)
}

// Replace moves an entry to another directory, over a file that exists there.
func (d *Dir) Replace(name string, to *Dir, toName string) error {
	return d.rename(name, to, toName, 0)
}

// Link gives a file a second name, as which it is irregular until one is removed.
func (d *Dir) Link(name string, to *Dir, toName string) error {
	if err := errors.Join(checkName(name), checkName(toName)); err != nil {
		return err
	}
	return d.fail("link", toName, unix.Linkat(d.fd(), name, to.fd(), toName, 0))
}

func (d *Dir) rename(name string, to *Dir, toName string, flags uint) error {
	if err := errors.Join(checkName(name), checkName(toName)); err != nil {
		return err
	}
	return d.adopted(name, to, func() error {
		_, err := retried(func() (int, error) { return 0, unix.Renameat2(d.fd(), name, to.fd(), toName, flags) })
		if err != nil {
			return &fs.PathError{Op: "rename", Path: toName, Err: err}
		}
		return nil
	})
}

// Remove removes a file, or a link itself.
func (d *Dir) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return d.fail("remove", name, unix.Unlinkat(d.fd(), name, 0))
}
