package files

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"weir/models"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// MakeDirectory creates a directory.
func (s *Service) MakeDirectory(ctx context.Context, actor policies.Actor, project int64, path models.FilePath) (Entry, error) {
	v, clean, err := s.viewAt(ctx, actor, project, path, (*view).requireChange)
	if err != nil {
		return Entry{}, err
	}
	dir, name, err := v.parent(clean)
	if err != nil {
		return Entry{}, err
	}
	defer dir.Close()
	o, err := v.begin(ctx, "create", clean, "", 0)
	if err != nil {
		return Entry{}, err
	}
	err = o.commit(ctx, 0, func(now *view) error { return now.checkChange(clean) }, func() error {
		made, err := dir.Mkdir(name)
		if err != nil {
			return err
		}
		return errors.Join(made.Close(), dir.Sync())
	})
	if err != nil {
		return Entry{}, o.abort(ctx, err)
	}
	if err := o.finish(ctx, nil, nil, audited(clean, 0), nil); err != nil {
		return Entry{}, err
	}
	return v.stat(clean)
}

// Move renames a file or directory, also into another directory. It overwrites nothing.
func (s *Service) Move(ctx context.Context, actor policies.Actor, project int64, from, to models.FilePath) (Entry, error) {
	v, source, target, err := s.pair(ctx, actor, project, from, to)
	if err != nil {
		return Entry{}, err
	}
	allowed := func(v *view) error {
		return errors.Join(v.checkChange(source), v.checkDownload(source), v.checkNoRules(source), v.checkChange(target))
	}
	if err := allowed(v); err != nil {
		return Entry{}, err
	}
	if rules.Within(target, source) {
		return Entry{}, models.Invalid("to", "must not be in what is moved")
	}
	fromDir, fromName, err := s.parent(source)
	if err != nil {
		return Entry{}, err
	}
	defer fromDir.Close()
	toDir, toName, err := s.parent(target)
	if err != nil {
		return Entry{}, err
	}
	defer toDir.Close()
	info, err := fromDir.Stat(fromName)
	if err != nil {
		return Entry{}, fileError(err)
	}
	before, after, err := s.relocated(ctx, project, fromDir, fromName, models.FilePath(source), models.FilePath(target))
	if err == nil {
		err = v.checkGained(ctx, models.FilePath(source), models.FilePath(target), after)
	}
	if err != nil {
		return Entry{}, err
	}
	o, err := v.begin(ctx, "move", source, target, 0)
	if err != nil {
		return Entry{}, err
	}
	err = o.commit(ctx, info.Inode, allowed, func() error { return fromDir.Rename(fromName, toDir, toName) })
	if err != nil {
		return Entry{}, o.abort(ctx, err)
	}
	if err := errors.Join(fromDir.Sync(), toDir.Sync()); err != nil {
		return Entry{}, err
	}
	above, _ := rules.Split(source)
	below, _ := rules.Split(target)
	use := movedBytes(project, above, below, before, after)
	if err := o.finish(ctx, use, audited(source, info.Size), audited(target, info.Size), nil); err != nil {
		return Entry{}, err
	}
	return v.stat(target)
}

// pair resolves a source that the user can read, and a target.
func (s *Service) pair(ctx context.Context, actor policies.Actor, project int64, from, to models.FilePath) (
	v *view, source, target string, err error) {
	if v, source, err = s.viewAt(ctx, actor, project, from, (*view).requireRead); err != nil {
		return v, "", "", err
	}
	target, err = v.requireChange(to)
	return v, source, target, err
}

// Copy copies a file or a directory. It overwrites nothing. What may not be downloaded
// may not be copied, since the rule would not hold for the copy.
func (s *Service) Copy(ctx context.Context, actor policies.Actor, project int64, from, to models.FilePath) (Entry, error) {
	v, source, target, err := s.pair(ctx, actor, project, from, to)
	if err != nil {
		return Entry{}, err
	}
	if err := v.checkDownload(source); err != nil {
		return Entry{}, err
	}
	v.source = source
	e, err := v.stat(source)
	if err != nil {
		return Entry{}, err
	}
	if e.Kind == beneath.Directory {
		if rules.Within(target, source) {
			return Entry{}, models.Invalid("to", "must not be in what is copied")
		}
		return v.build(ctx, "copy", target, func(o *operation, into *beneath.Dir) error { return o.copyTree(ctx, source, into) })
	}
	f, info, err := v.open(source)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	return v.write(ctx, "copy", target, f, info.Size, Condition{IfNoneMatch: "*"})
}

// build creates a directory that appears at its path when it is complete.
func (v *view) build(ctx context.Context, kind, path string, fill func(o *operation, into *beneath.Dir) error) (Entry, error) {
	dir, name, err := v.parent(path)
	if err != nil {
		return Entry{}, err
	}
	defer dir.Close()
	if _, err := dir.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return Entry{}, fileError(errors.Join(err, fs.ErrExist))
	}
	o, err := v.begin(ctx, kind, path, "", 0)
	if err != nil {
		return Entry{}, err
	}
	tmp, err := o.temporary()
	if err != nil {
		return Entry{}, o.abort(ctx, err)
	}
	defer tmp.Close()
	into, err := tmp.Mkdir(idName(o.row.ID))
	if err != nil {
		return Entry{}, o.abort(ctx, fileError(err))
	}
	defer into.Close()
	if err := errors.Join(fill(o, into), into.SyncFileSystem()); err != nil {
		return Entry{}, o.abort(ctx, fileError(err))
	}
	info, err := tmp.Stat(idName(o.row.ID))
	if err != nil {
		return Entry{}, o.abort(ctx, fileError(err))
	}
	err = o.commit(ctx, info.Inode, func(now *view) error { return errors.Join(now.checkChange(path), o.checkInPlace(dir, path)) },
		func() error { return tmp.Rename(idName(o.row.ID), dir, name) })
	if err != nil {
		return Entry{}, o.abort(ctx, err)
	}
	if err := dir.Sync(); err != nil {
		return Entry{}, err
	}
	if err := o.finish(ctx, o.written(), nil, audited(path, o.bytes), nil); err != nil {
		return Entry{}, err
	}
	return v.stat(path)
}

// copyTree copies what is below a directory. Links and special files are left out.
func (o *operation) copyTree(ctx context.Context, source string, into *beneath.Dir) error {
	made := map[string]*beneath.Dir{source: into}
	defer func() {
		for path, d := range made {
			if path != source {
				d.Close()
			}
		}
	}()
	return o.walk(ctx, source, passGone, func(path string, info beneath.Info, dir *beneath.Dir) error {
		if err := o.checkDownload(path); err != nil {
			return err
		}
		above, name := rules.Split(path)
		for other, d := range made { // walked to its end
			if other != source && !rules.Within(path, other) {
				d.Close()
				delete(made, other)
			}
		}
		switch info.Kind {
		case beneath.Directory:
			d, err := made[above].Mkdir(name)
			if err == nil {
				made[path] = d
			}
			return err
		case beneath.Regular:
			return o.copyFile(ctx, dir, made[above], name)
		default:
			return nil
		}
	})
}

func (o *operation) copyFile(ctx context.Context, from, into *beneath.Dir, name string) error {
	source, info, err := from.Open(name)
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	return create(into, name, func(f *os.File) error { return o.fill(ctx, f, source, info.Size) })
}
