package beneath

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Errors of paths that exist, beside those of the file system.
var (
	// ErrIrregular is the error for what is neither a directory nor a regular file with
	// one link: symbolic and hard links, FIFOs, sockets, devices.
	ErrIrregular = errors.New("neither a directory nor a regular file with one link")
	// ErrName is the error for a name that no file can have.
	ErrName = errors.New("not a name of a file")
)

// noOpenat2 is set once the kernel has said that it lacks openat2.
var noOpenat2 atomic.Bool

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// resolve opens the directory at path below root.
func resolve(root int, path string) (int, error) {
	if path == "" {
		path = "."
	}
	if !noOpenat2.Load() {
		fd, err := retried(func() (int, error) {
			return unix.Openat2(root, path, &unix.OpenHow{Flags: dirFlags,
				Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
		})
		// Some seccomp filters refuse system calls that they do not know with EPERM.
		if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
			return fd, err
		}
		noOpenat2.Store(errors.Is(err, unix.ENOSYS))
	}
	return walk(root, path)
}

// walk is resolve without openat2. It opens each name in the directory before it,
// without following links, so no name can lead out either.
func walk(root int, path string) (int, error) {
	fd, err := unix.Openat(root, ".", dirFlags, 0)
	if err != nil || path == "." {
		return fd, err
	}
	for name := range strings.SplitSeq(path, "/") {
		next, err := retried(func() (int, error) { return unix.Openat(fd, name, dirFlags, 0) })
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// retried repeats a system call that was interrupted, or whose resolution raced with a
// rename. An attacker can cause the latter for ever, so it is bounded.
func retried[T any](call func() (T, error)) (v T, err error) {
	const attempts = 128
	for range attempts {
		if v, err = call(); err != unix.EINTR && err != unix.EAGAIN {
			break
		}
	}
	return v, err
}

// checkName refuses names that are not in the directory itself.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%w: %q", ErrName, name)
	}
	return nil
}

// irregular adds [ErrIrregular] to the errors that the kernel has for symbolic links.
func irregular(err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV) {
		return errors.Join(ErrIrregular, err)
	}
	return err
}
