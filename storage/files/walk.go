package files

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// walk calls fn for the entries below a directory that the user can read, a directory
// before what is in it, which fs.SkipDir leaves out, until fs.SkipAll. dir is the
// directory of the entry. An entry that cannot be read ends it, unless passed reports that it is left out.
func (v *view) walk(ctx context.Context, path string, passed func(path string, err error) bool,
	fn func(path string, info beneath.Info, dir *beneath.Dir) error) error {
	dir, err := v.Root.Dir(strings.TrimPrefix(path, "/"))
	if err != nil {
		return fileError(err)
	}
	defer dir.Close()
	err = v.walkDir(ctx, dir, path, passed, fn)
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return fileError(err)
}

func (v *view) walkDir(ctx context.Context, dir *beneath.Dir, path string, passed func(path string, err error) bool,
	fn func(string, beneath.Info, *beneath.Dir) error) error {
	for batch, err := range dir.Names() {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		slices.Sort(batch)
		for _, name := range batch {
			child := rules.Join(path, name)
			if v.user.Verdict(child).Access == models.AccessNone {
				continue
			}
			info, err := dir.Stat(name)
			if len(child) > rules.MaxPath {
				err = unix.ENAMETOOLONG // it has no address
			}
			if err != nil && passed(child, err) {
				continue
			}
			if err != nil {
				return err
			}
			if err := fn(child, info, dir); errors.Is(err, fs.SkipDir) {
				continue
			} else if err != nil {
				return err
			}
			if info.Kind != beneath.Directory {
				continue
			}
			sub, err := dir.Dir(name)
			if err != nil && passed(child, err) {
				continue
			}
			if err != nil {
				return err
			}
			err = v.walkDir(ctx, sub, child, passed, fn)
			sub.Close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// passGone leaves out what is gone.
func passGone(_ string, err error) bool { return gone(err) }

// passUnreadable leaves out what cannot be read, too.
func passUnreadable(_ string, err error) bool { return unreadable(err) }
