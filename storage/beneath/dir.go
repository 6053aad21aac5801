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

// Owner is the owner of what is created; the zero value of Set leaves it to the process.
type Owner struct {
	UID, GID int
	Set      bool
	// Shared lets the group do what the owner can, also with what is created in created
	// directories, whatever the umask.
	Shared bool
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
