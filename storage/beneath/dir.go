package beneath

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Kind is the kind of an entry.
type Kind string

const (
	Directory Kind = "directory"
	Regular   Kind = "file"  // with one link
	Irregular Kind = "other" // see ErrIrregular; it cannot be opened
)

// Info describes an entry of a directory.
type Info struct {
	Name     string
	Kind     Kind
	Size     int64 // bytes; 0 of directories
	Modified time.Time
	Changed  time.Time // of content or attributes, by the file system's clock
	Inode    uint64
	UID, GID uint32
	Mode     uint32 // permissions, with those for setting IDs
	Links    uint64
}

func infoOf(name string, st *unix.Stat_t) Info {
	i := Info{Name: name, Kind: Irregular, Modified: time.Unix(st.Mtim.Unix()), Changed: time.Unix(st.Ctim.Unix()), Inode: st.Ino,
		UID: st.Uid, GID: st.Gid, Mode: st.Mode & 0o7777, Links: uint64(st.Nlink)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		i.Kind = Directory
	case unix.S_IFREG:
		i.Size = st.Size
		if st.Nlink == 1 {
			i.Kind = Regular
		}
	}
	return i
}

// Dir is an open directory. It stays the same directory when it is moved.
type Dir struct {
	file  *os.File
	owner Owner
}

func newDir(fd int, name string, owner Owner) *Dir {
	return &Dir{os.NewFile(uintptr(fd), name), owner}
}

// Close closes the directory.
func (d *Dir) Close() error { return d.file.Close() }

func (d *Dir) fd() int { return int(d.file.Fd()) }

func (d *Dir) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: irregular(err)}
}

// Stat describes an entry. It does not follow links.
func (d *Dir) Stat(name string) (Info, error) {
	if err := checkName(name); err != nil {
		return Info{}, err
	}
	var st unix.Stat_t
	_, err := retried(func() (int, error) { return 0, unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return infoOf(name, &st), d.fail("stat", name, err)
}

// Dir opens a directory in the directory.
func (d *Dir) Dir(name string) (*Dir, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	fd, err := resolve(d.fd(), name)
	if err != nil {
		return nil, d.fail("open", name, err)
	}
	return newDir(fd, name, d.owner), nil
}

// openat opens an entry for an operation. It does not follow links.
func (d *Dir) openat(op, name string, flags int, mode uint32) (int, error) {
	if err := checkName(name); err != nil {
		return -1, err
	}
	fd, err := retried(func() (int, error) { return unix.Openat(d.fd(), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode) })
	return fd, d.fail(op, name, err)
}

// Open opens a regular file for reading. The entry is first opened without effect, so
// that nothing else is ever opened for reading, then again through its handle.
func (d *Dir) Open(name string) (*os.File, Info, error) {
	path, err := d.openat("open", name, unix.O_PATH, 0)
	if err != nil {
		return nil, Info{}, err
	}
	defer unix.Close(path)
	var st unix.Stat_t
	if err := unix.Fstat(path, &st); err != nil {
		return nil, Info{}, d.fail("stat", name, err)
	}
	info := infoOf(name, &st)
	if info.Kind != Regular {
		return nil, info, d.fail("open", name, ErrIrregular)
	}
	// Without O_NONBLOCK a lease that somebody has on the file would block.
	fd, err := retried(func() (int, error) {
		return unix.Open(fmt.Sprintf("/proc/self/fd/%d", path), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, info, d.fail("open", name, err)
	}
	return os.NewFile(uintptr(fd), name), info, nil
}

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

// Names yields the names in the directory, in batches.
func (d *Dir) Names() func(yield func([]string, error) bool) {
	return func(yield func([]string, error) bool) {
		// A handle of its own has its own position.
		fd, err := unix.Openat(d.fd(), ".", dirFlags, 0)
		if err != nil {
			yield(nil, d.fail("open", ".", err))
			return
		}
		f := os.NewFile(uintptr(fd), d.file.Name())
		defer f.Close()
		for {
			names, err := f.Readdirnames(1024)
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(names, err) || err != nil {
				return
			}
		}
	}
}

// Locked calls a function while no other caller of it for the directory does, in any
// process. It must be a directory that notebooks cannot open: they could lock it as well.
func (d *Dir) Locked(fn func() error) error {
	for {
		err := unix.Flock(d.fd(), unix.LOCK_EX)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return d.fail("lock", ".", err)
		}
	}
	return errors.Join(fn(), d.fail("unlock", ".", unix.Flock(d.fd(), unix.LOCK_UN)))
}

// Same reports whether both are the same directory.
func (d *Dir) Same(other *Dir) (bool, error) {
	a, err1 := d.file.Stat()
	b, err2 := other.file.Stat()
	if err := errors.Join(err1, err2); err != nil {
		return false, err
	}
	return os.SameFile(a, b), nil
}

// Sync makes changes of the directory's entries durable.
func (d *Dir) Sync() error { return d.file.Sync() }

// SyncFileSystem makes all that was written to the directory's file system durable. For
// many files it costs less than to sync each.
func (d *Dir) SyncFileSystem() error { return d.fail("sync", ".", unix.Syncfs(d.fd())) }
