package beneath

import (
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is a directory that no operation leaves.
type Root struct {
	dir   *os.File
	owner Owner
}

// OpenRoot opens a root. What is created below it gets the owner.
func OpenRoot(path string, owner Owner) (*Root, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Root{os.NewFile(uintptr(fd), path), owner}, nil
}

// Close closes the root. Open directories and files stay open.
func (r *Root) Close() error { return r.dir.Close() }

// Space returns the bytes of the file system that ordinary users can still write, and how many it has.
func (r *Root) Space() (free, size int64, err error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(r.dir.Fd()), &fs); err != nil {
		return 0, 0, os.NewSyscallError("fstatfs", err)
	}
	return int64(fs.Bavail) * fs.Bsize, int64(fs.Blocks) * fs.Bsize, nil
}

// Dir opens a directory by its path, relative to the root and without a leading slash;
// "" is the root itself. A symbolic link anywhere in the path is an error.
func (r *Root) Dir(path string) (*Dir, error) {
	if path != "" {
		for name := range strings.SplitSeq(path, "/") {
			if err := checkName(name); err != nil {
				return nil, err
			}
		}
	}
	fd, err := resolve(int(r.dir.Fd()), path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: irregular(err)}
	}
	return newDir(fd, path, r.owner), nil
}
