package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Source is a file to save under a name.
type Source struct{ Name, File string }

// Saved says what was saved.
type Saved struct {
	End
	Size    int64 // bytes of the archive
	Skipped int64 // sockets and the like in the shared directories
}

// Temporary is the pattern of the names of files and directories beside a backup while it is
// made.
const Temporary = ".weir-backup-*"

// Write writes a backup of the sources, and of the directory shared unless it is empty, to a
// new file that only this user can read. The file is complete and on the disk, or not there.
func Write(ctx context.Context, file string, m Manifest, sources []Source, shared string) (saved Saved, err error) {
	if _, err := os.Lstat(file); err == nil {
		return saved, fmt.Errorf("%s exists: it is not overwritten", file)
	}
	m.Format, m.Shared = Format, shared != ""
	for _, s := range sources {
		f, err := describe(s.Name, s.File)
		if err != nil {
			return saved, err
		}
		m.Files = append(m.Files, f)
	}
	if err := m.check(); err != nil {
		return saved, err
	}
	out, err := os.CreateTemp(filepath.Dir(file), Temporary) // mode 0600
	if err != nil {
		return saved, err
	}
	defer func() {
		if err != nil {
			_ = out.Close() // the error is why
			err = errors.Join(fmt.Errorf("no backup was made: %w", err), os.Remove(out.Name()))
		}
	}()
	if saved, err = writeTo(ctx, out, m, sources, shared); err != nil {
		return saved, err
	}
	if saved.Size, err = out.Seek(0, io.SeekEnd); err != nil {
		return saved, err
	}
	return saved, publish(out, file)
}

// publish gives a written file its name, which no other file has.
func publish(out *os.File, file string) error {
	if err := out.Sync(); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	if err := moveNew(out.Name(), file); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(file))
}

// moveNew renames a file unless there is one of the new name.
func moveNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) { // the file system cannot
		return err
	}
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// SyncDir writes to the disk which files a directory has.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func writeTo(ctx context.Context, out io.Writer, m Manifest, sources []Source, shared string) (Saved, error) {
	compressed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return Saved{}, err
	}
	w := writer{ctx: ctx, tar: tar.NewWriter(compressed), digest: newDigest()}
	if err := w.document(manifestName, m, m.CreatedAt); err != nil {
		return Saved{}, err
	}
	for i, s := range sources {
		if err := w.source(s, m.Files[i], m.CreatedAt); err != nil {
			return Saved{}, err
		}
	}
	if shared != "" {
		if err := w.tree(shared); err != nil {
			return Saved{}, err
		}
	}
	end := w.digest.end()
	if err := w.document(endName, end, m.CreatedAt); err != nil {
		return Saved{}, err
	}
	return Saved{End: end, Skipped: w.skipped}, errors.Join(w.tar.Close(), compressed.Close())
}

type writer struct {
	ctx     context.Context
	tar     *tar.Writer
	digest  *digest
	skipped int64
}

// document writes a JSON document, which the digest does not cover.
func (w *writer) document(name string, v any, at time.Time) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(b)), ModTime: at}); err != nil {
		return err
	}
	_, err = w.tar.Write(b)
	return err
}

func (w *writer) source(s Source, f File, at time.Time) error {
	in, err := os.Open(s.File)
	if err != nil {
		return err
	}
	defer in.Close()
	return w.entry(&tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Mode: 0o600, Size: f.Size, ModTime: at}, in)
}

// entry writes an entry with the content of in, which may grow or shrink meanwhile: what is
// missing is zero.
func (w *writer) entry(h *tar.Header, in io.Reader) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	w.digest.begin(h.Typeflag, h.Name, h.Linkname, h.Mode, h.Size)
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.CopyN(io.MultiWriter(w.tar, w.digest), io.MultiReader(in, zeros{}), h.Size)
	return err
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// notSaved is what belongs to the parts of deployments, which end with a restored database: their
// models are saved.
var notSaved = regexp.MustCompile(`^\.weir/(deployments(-r[0-9]+)?|parts)$`)

// tree writes the directories and files below root. What disappears meanwhile is not saved.
func (w *writer) tree(root string) error {
	in, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer in.Close()
	return w.walk(in, ".", true)
}

// walk writes a file, or a directory with what is below it. [fs.WalkDir] reads no directory whose
// name is not UTF-8.
func (w *writer) walk(in *os.Root, name string, isDir bool) error {
	if notSaved.MatchString(name) {
		return nil
	}
	err := w.node(in, name)
	var entries []fs.DirEntry
	if err == nil && isDir {
		entries, err = readDir(in, name)
	}
	if errors.Is(err, fs.ErrNotExist) && name != "." {
		return nil
	}
	for _, e := range entries {
		if err == nil {
			err = w.walk(in, filepath.Join(name, e.Name()), e.IsDir())
		}
	}
	return err
}

// readDir returns what is in a directory, in the order of names. What has become something else,
// such as a link, does not exist as a directory.
func readDir(in *os.Root, name string) ([]fs.DirEntry, error) {
	f, err := in.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if now, errNow := in.Lstat(name); errNow != nil || !now.IsDir() {
		if err == nil {
			f.Close()
		}
		return nil, errors.Join(errNow, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

func (w *writer) node(in *os.Root, name string) error {
	info, err := in.Lstat(name)
	if err != nil {
		return err
	}
	link := ""
	switch kind := info.Mode().Type(); kind {
	case 0, fs.ModeDir:
	case fs.ModeSymlink:
		if link, err = in.Readlink(name); err != nil {
			return err
		}
	default:
		w.skipped++
		return nil
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname, h.Format = filepath.ToSlash(filepath.Join(SharedDir, name)), "", "", tar.FormatPAX
	if h.Typeflag != tar.TypeReg {
		return w.entry(h, nil)
	}
	f, err := in.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return w.entry(h, f)
}
