package files

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// maxFolder is the most entries of a directory that a Folder lists.
const maxFolder = 20_000

// Folder returns a directory with the files in it that the user can read, for what reads
// several of them, and its path. Only files can be opened, also those of directories in it. They
// are for programs: what is downloaded is opened by Open.
func (s *Service) Folder(ctx context.Context, actor policies.Actor, project int64,
	path models.FilePath) (models.FilePath, fs.ReadDirFS, error) {
	v, clean, err := s.viewAt(ctx, actor, project, path, (*view).requireRead)
	if err != nil {
		return "", nil, err
	}
	e, err := v.stat(clean)
	if err == nil && e.Kind != beneath.Directory {
		err = models.Conflict("This is not a directory.")
	}
	return e.Path, folder{ctx, v, clean}, err
}

// folder is a directory as one view of it.
type folder struct {
	ctx  context.Context
	view *view
	path string
}

// Open opens a file of the directory.
func (f folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	path := rules.Join(f.path, name)
	err := f.view.check(path, models.AccessRead)
	if err == nil {
		file, _, failed := f.view.open(path)
		if err = failed; err == nil {
			return file, nil
		}
	}
	if models.KindOf(err) == models.KindNotFound {
		err = fs.ErrNotExist
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: err}
}

// ReadDir lists the files that the user can read, by name.
func (f folder) ReadDir(string) (list []fs.DirEntry, err error) {
	dir, err := f.view.Root.Dir(strings.TrimPrefix(f.path, "/"))
	if err != nil {
		return nil, fileError(err)
	}
	defer dir.Close()
	for batch, err := range dir.Names() {
		if err = errors.Join(err, f.ctx.Err()); err != nil {
			return nil, fileError(err)
		}
		if len(list) > maxFolder {
			return nil, models.Conflict("The directory has more than %d entries.", int64(maxFolder))
		}
		for _, name := range batch {
			if info, err := dir.Stat(name); err == nil && f.view.check(rules.Join(f.path, name), models.AccessRead) == nil {
				list = append(list, fs.FileInfoToDirEntry(listed{info}))
			}
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// listed is what is known of an entry of a folder when it is listed.
type listed struct{ info beneath.Info }

func (l listed) Name() string       { return l.info.Name }
func (l listed) Size() int64        { return l.info.Size }
func (l listed) ModTime() time.Time { return l.info.Modified }
func (l listed) IsDir() bool        { return l.info.Kind == beneath.Directory }
func (l listed) Sys() any           { return nil }

func (l listed) Mode() fs.FileMode {
	mode := fs.FileMode(l.info.Mode).Perm()
	switch l.info.Kind {
	case beneath.Directory:
		return mode | fs.ModeDir
	case beneath.Regular:
		return mode
	default:
		return mode | fs.ModeIrregular
	}
}
