package files

import (
	"archive/tar"
	"archive/zip"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"weir/models"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// Archive is a directory as an archive that is written as a stream. What the user may
// not download, links and special files are left out.
type Archive struct {
	Entry Entry
	*Transfer
	v      *view
	items  []string // these and what is in them
	format Format
}

// maxItems is the most entries that an archive is asked for.
const maxItems = 1000

// OpenArchive prepares the archive of a directory, or of some entries below it: then the
// directory is the deepest one that contains them. Close it. sends is as for Open.
func (s *Service) OpenArchive(ctx context.Context, actor policies.Actor, project int64, path models.FilePath, items []models.FilePath,
	format Format, sends bool) (*Archive, error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return nil, err
	}
	clean, some, err := v.downloads(path, items)
	if err != nil {
		return nil, err
	}
	e, err := v.stat(clean)
	if err != nil {
		return nil, err
	}
	if e.Kind != beneath.Directory {
		return nil, models.Conflict("This is not a directory.")
	}
	a := &Archive{Entry: e, v: v, items: some, format: format}
	if err := a.checkZip(ctx); err != nil {
		return nil, err
	}
	if sends {
		if err := v.auditDownload(ctx, clean, 0); err != nil {
			return nil, err
		}
	}
	a.Transfer = s.transfers.begin(v, some...)
	return a, nil
}

// checkZip refuses what is too much for a zip archive, while that can still be said.
func (a *Archive) checkZip(ctx context.Context) error {
	if a.format != Zip {
		return nil
	}
	bound, began := zipBound{most: a.v.Settings.Archive.Entries}, a.v.Store.Elapsed()
	err := a.each(ctx, func(_, name string, _ beneath.Info, _ *beneath.Dir) error {
		if a.v.Store.Elapsed()-began > checkFor {
			return errUnchecked
		}
		return bound.add(name)
	})
	if errors.Is(err, errUnchecked) {
		return nil
	}
	return err
}

// checkFor is how long the beginning of a download may wait for the check of its entries; after
// that, they are only counted while they are written.
const checkFor = 5 * time.Second

var errUnchecked = errors.New("the check takes too long")

// zipBound is how many entries a zip archive can have: its writer keeps all of them in
// memory for the directory at its end.
type zipBound struct{ most, entries int }

// add counts an entry; one with a long name is as many as would fill its place.
func (b *zipBound) add(name string) error {
	if b.entries += 1 + len(name)/directoryBytes; b.entries > b.most {
		return models.Conflict("A ZIP archive can have at most %d entries, and this would have more. Download it as TAR.", b.most)
	}
	return nil
}

// downloads returns the directory of an archive and the clean paths of what is in it: the
// user may download each of them.
func (v *view) downloads(path models.FilePath, items []models.FilePath) (dir string, paths []string, err error) {
	if len(items) == 0 {
		dir, err = v.requireDownload(path)
		return dir, []string{dir}, err
	}
	if len(items) > maxItems {
		return "", nil, models.Invalid("item", "must be at most %d", maxItems)
	}
	for _, item := range items {
		clean, err := v.requireDownload(item)
		if err != nil {
			return "", nil, err
		}
		if _, err = v.stat(clean); err != nil {
			return "", nil, err
		}
		paths = append(paths, clean)
	}
	return commonDir(paths), paths, nil
}

// commonDir is the deepest directory that contains all paths.
func commonDir(paths []string) string {
	dir, _ := rules.Split(paths[0])
	for _, p := range paths {
		for !rules.Within(p, dir) || p == dir {
			dir, _ = rules.Split(dir)
		}
	}
	return dir
}

// includes reports whether the archive has a path, or else whether the path leads to
// something that it has.
func (a *Archive) includes(path string) (whole, leads bool) {
	whole = slices.ContainsFunc(a.items, func(item string) bool { return rules.Within(path, item) })
	return whole, whole || slices.ContainsFunc(a.items, func(item string) bool { return rules.Within(item, path) })
}

// Close ends the transfer.
func (a *Archive) Close() { a.end() }

// Write writes the archive. After an error it is not complete.
func (a *Archive) Write(ctx context.Context, w io.Writer) error {
	pack := zipTo(w, a.v.Settings.Archive.Entries)
	if a.format == Tar {
		pack = tarTo(w)
	}
	err := a.each(ctx, func(path, name string, info beneath.Info, dir *beneath.Dir) error {
		if a.Cut() {
			return models.Forbidden("The right to this download has ended.")
		}
		if info.Kind == beneath.Directory {
			_, err := pack.add(name+"/", info)
			return err
		}
		return a.addFile(pack, dir, path, name)
	})
	if err != nil {
		return err
	}
	return pack.close()
}

// each calls fn with what the archive has, and with the names in it.
func (a *Archive) each(ctx context.Context, fn func(path, name string, info beneath.Info, dir *beneath.Dir) error) error {
	root := string(a.Entry.Path)
	return a.v.walk(ctx, root, a.passed, func(path string, info beneath.Info, dir *beneath.Dir) error {
		if whole, leads := a.includes(path); !leads {
			return fs.SkipDir
		} else if !whole {
			return nil
		}
		if info.Kind == beneath.Irregular || !a.v.user.Verdict(path).Download {
			return nil
		}
		return fn(path, strings.TrimPrefix(path, root+"/"), info, dir)
	})
}

// passed reports whether what cannot be read is left out: it is gone, or would not have been in the archive.
func (a *Archive) passed(path string, err error) bool {
	return gone(err) || !a.v.user.Verdict(path).Download
}

func (a *Archive) addFile(pack packer, dir *beneath.Dir, path, name string) error {
	_, base := rules.Split(path)
	f, info, err := dir.Open(base)
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	to, err := pack.add(name, info)
	if err == nil {
		_, err = io.CopyN(to, f, info.Size)
	}
	return err
}

// packer writes one format.
type packer struct {
	add   func(name string, info beneath.Info) (io.Writer, error)
	close func() error
}

func zipTo(w io.Writer, entries int) packer {
	z, bound := zip.NewWriter(w), zipBound{most: entries}
	return packer{func(name string, info beneath.Info) (io.Writer, error) {
		if err := bound.add(name); err != nil {
			return nil, err
		}
		return z.CreateHeader(&zip.FileHeader{Name: name, NonUTF8: !utf8.ValidString(name), Method: zip.Store, Modified: info.Modified})
	}, z.Close}
}

func tarTo(w io.Writer) packer {
	t := tar.NewWriter(w)
	return packer{func(name string, info beneath.Info) (io.Writer, error) {
		h := &tar.Header{Name: name, Size: info.Size, Mode: 0o644, ModTime: info.Modified, Typeflag: tar.TypeReg, Format: tar.FormatGNU}
		if strings.HasSuffix(name, "/") {
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		}
		return t, t.WriteHeader(h)
	}, t.Close}
}
