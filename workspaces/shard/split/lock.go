package split

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockPause is the time between two attempts to lock a folder.
const lockPause = 20 * time.Millisecond

// lock waits until no one else writes to a folder, and removes what an earlier writer has left
// unfinished. Close the result to unlock. Folders of file systems without locks are not locked:
// writers still do not harm each other there, and may write the same part twice.
func lock(ctx context.Context, to *os.Root) (*os.File, error) {
	dir, err := to.Open(".")
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			if err := removeUnfinished(to); err != nil {
				return nil, errors.Join(err, dir.Close())
			}
			return dir, nil
		case errors.Is(err, unix.EBADF), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP):
			return dir, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, errors.Join(err, dir.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), dir.Close())
		case <-time.After(lockPause):
		}
	}
}

// IsUnfinished reports whether a name is that of a file that is being written, or was when its
// writer ended.
func IsUnfinished(name string) bool { return strings.HasPrefix(name, unfinished) }

// unfinished begins the name of a file while it is written.
const unfinished = ".unfinished"

// RemoveUnfinished removes what writers that have ended have left in a folder; nothing as long as
// one writes, or where that cannot be known.
func RemoveUnfinished(folder string) error {
	to, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer to.Close()
	dir, err := to.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil
	}
	return removeUnfinished(to)
}

func removeUnfinished(to *os.Root) error {
	list, err := fs.Glob(to.FS(), unfinished+"*")
	for _, name := range list {
		err = errors.Join(err, to.Remove(name))
	}
	return err
}
