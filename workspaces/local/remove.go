package local

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// gonePrefix begins the names of directories that are to be deleted.
const gonePrefix = "gone-"

// remove takes what an ended instance has left out of the run directory, and has it deleted. The
// cgroup is first: the record remains until it can be removed. The caller must have locked mu.
func (r *Runtime) remove(in *instance) error {
	if !in.owner.Owns(in.Owner) { // the directory of its number is this owner's
		return nil
	}
	r.closeAPI(in.key())
	delete(r.reasons, in.key())
	if in.foreign() {
		r.config.Logger.Warn("this is a copy of another data directory; what runs there is left alone",
			"workspace", in.Workspace, "directory", in.Dir)
	} else if err := in.Cgroup.remove(); err != nil {
		return err
	}
	gone := filepath.Join(r.config.Dir, gonePrefix+rand.Text())
	if err := os.Rename(in.dir, gone); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	r.discard(gone)
	return nil
}

// discard deletes a directory in the background: programs can have left any number of files in it,
// for which nobody waits. What is still there when the server ends is deleted by the next one.
func (r *Runtime) discard(dir string) {
	if r.ctx.Err() != nil {
		return
	}
	r.wg.Go(func() {
		if err := removeTree(r.ctx, dir); err != nil && r.ctx.Err() == nil {
			r.config.Logger.Warn("cannot delete what a workspace has left", "directory", dir, "error", err)
		}
	})
}

// discardLeftovers deletes what an earlier server has not.
func (r *Runtime) discardLeftovers() error {
	entries, err := os.ReadDir(r.config.Dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), gonePrefix) {
			r.discard(filepath.Join(r.config.Dir, e.Name()))
		}
	}
	return err
}

// removeTree deletes a directory. It takes a few descriptors however deep the directory is, where
// [os.RemoveAll] takes one for each level: directories in a directory move up to the top until none
// is left. A run that has outlived its workspace may still write in it: no link leads elsewhere.
func removeTree(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	top, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer top.Close()
	err = eachIn(ctx, top, ".", func(path string, isDir bool) error {
		if !isDir {
			return top.Remove(path)
		}
		err := eachIn(ctx, top, path, func(path string, isDir bool) error {
			if !isDir {
				return top.Remove(path)
			}
			return top.Rename(path, rand.Text())
		})
		return errors.Join(err, top.Remove(path))
	})
	return errors.Join(err, os.Remove(dir))
}

// removeTime is how long one directory is deleted, if programs still write in it.
const removeTime = time.Hour

// eachIn passes what is in a directory on until nothing is there any more. Directories are made
// accessible first: programs may have removed the permissions.
func eachIn(ctx context.Context, top *os.Root, dir string, remove func(path string, isDir bool) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := readSome(top, dir, 1000)
		if len(entries) == 0 || err != nil {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if e.IsDir() {
				err = top.Chmod(path, 0o700)
			}
			if err = errors.Join(err, remove(path, e.IsDir())); err != nil {
				return err
			}
		}
	}
}

// readSome reads up to n entries of a directory, which may have become something else.
func readSome(top *os.Root, dir string, n int) ([]fs.DirEntry, error) {
	f, err := top.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}
