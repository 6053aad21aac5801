package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// Check reads all of a backup and returns its manifest, and what it has. Its content must not
// have more bytes than limit.
func Check(ctx context.Context, file string, limit int64) (Manifest, End, error) {
	return read(ctx, file, limit, nothing{})
}

// Extract checks a backup and puts its files and directories into dir, which must be empty.
// After an error, there may be a part of them.
func Extract(ctx context.Context, file, dir string, limit int64) (Manifest, End, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Manifest{}, End{}, err
	}
	defer root.Close()
	target := &directory{root: root, owners: os.Geteuid() == 0}
	m, end, err := read(ctx, file, limit, target)
	if err == nil {
		err = target.finish()
	}
	return m, end, err
}

// sink receives the entries of an archive.
type sink interface {
	file(h *tar.Header) (io.WriteCloser, error)
	dir(h *tar.Header) error
	link(h *tar.Header) error
}

func read(ctx context.Context, file string, limit int64, to sink) (m Manifest, end End, err error) {
	f, err := os.Open(file)
	if err != nil {
		return m, end, err
	}
	defer f.Close()
	compressed, err := gzip.NewReader(f)
	if err != nil {
		return m, end, damaged("it is not compressed as a backup is: %w", err)
	}
	r := reader{ctx: ctx, tar: tar.NewReader(compressed), to: to, limit: limit, digest: newDigest(), dirs: map[string]bool{}}
	if m, err = r.manifest(); err != nil {
		return m, end, err
	}
	for _, want := range m.Files {
		if err := r.listed(want); err != nil {
			return m, end, err
		}
	}
	if end, err = r.rest(m.Shared); err != nil {
		return m, end, err
	}
	return m, end, r.over(compressed)
}

// over checks that nothing follows the last entry. The end of the compressed file has its
// checksum.
func (r *reader) over(compressed io.Reader) error {
	if _, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		return damaged("something follows its last entry")
	}
	switch n, err := compressed.Read(make([]byte, 1)); {
	case n > 0:
		return damaged("something follows its end")
	case !errors.Is(err, io.EOF):
		return damaged("its checksum is wrong, or something follows its end: %w", err)
	}
	return nil
}

type reader struct {
	ctx    context.Context
	tar    *tar.Reader
	to     sink
	limit  int64 // bytes
	digest *digest
	dirs   map[string]bool // that were made
}

func (r *reader) next() (*tar.Header, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	h, err := r.tar.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, damaged("it ends before its last entry")
	case err != nil:
		return nil, damaged("%w", err)
	}
	return h, nil
}

func (r *reader) manifest() (m Manifest, err error) {
	h, err := r.next()
	if err != nil {
		return m, err
	}
	if h.Name != manifestName || h.Typeflag != tar.TypeReg {
		return m, damaged("its first entry is %q, not %s", h.Name, manifestName)
	}
	if err := decode(r.tar, h.Size, &m); err != nil {
		return m, err
	}
	return m, m.check()
}

// listed reads a file that the manifest names.
func (r *reader) listed(want File) error {
	h, err := r.next()
	if err != nil {
		return err
	}
	if h.Name != want.Name || h.Typeflag != tar.TypeReg || h.Size != want.Size {
		return damaged("it has %q of %d bytes where its manifest says %q of %d bytes", h.Name, h.Size, want.Name, want.Size)
	}
	sum := sha256.New()
	if err := r.copy(h, sum); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want.SHA256 {
		return damaged("%s has the SHA-256 %s, its manifest says %s", h.Name, got, want.SHA256)
	}
	return nil
}

// rest reads the shared directories and the end.
func (r *reader) rest(shared bool) (end End, err error) {
	for {
		h, err := r.next()
		if err != nil {
			return end, err
		}
		if h.Name == endName {
			if err := decode(r.tar, h.Size, &end); err != nil {
				return end, err
			}
			if got := r.digest.end(); got != end {
				return end, damaged("it has %d entries with %d bytes and the SHA-256 %s, its end says %d, %d and %s",
					got.Entries, got.Bytes, got.SHA256, end.Entries, end.Bytes, end.SHA256)
			}
			return end, nil
		}
		if err := r.node(h, shared); err != nil {
			return end, err
		}
	}
}

// node reads an entry of the shared directories.
func (r *reader) node(h *tar.Header, shared bool) error {
	name := h.Name
	if h.Typeflag == tar.TypeDir {
		name = path.Clean(name) // a directory's ends with a slash
	}
	switch {
	case !plain(name):
		return damaged("the entry %q leads out of it", h.Name)
	case !shared || !isShared(name):
		return damaged("nothing says what its entry %q is", h.Name)
	case name != SharedDir && !r.dirs[path.Dir(name)]:
		return damaged("the entry %q is not in a directory of it", h.Name)
	}
	h.Name = name
	switch h.Typeflag {
	case tar.TypeReg:
		return r.copy(h, io.Discard)
	case tar.TypeDir:
		r.digest.begin(h.Typeflag, name, "", h.Mode, 0)
		r.dirs[name] = true
		return r.to.dir(h)
	case tar.TypeSymlink:
		r.digest.begin(h.Typeflag, name, h.Linkname, h.Mode, 0)
		return r.to.link(h)
	default:
		return damaged("the entry %q is neither a file nor a directory: links between files and devices are refused", h.Name)
	}
}

// copy writes the content of a file to the sink and to sum.
func (r *reader) copy(h *tar.Header, sum io.Writer) error {
	if h.Size > r.limit-r.digest.Bytes {
		return fmt.Errorf("the archive is too large: with %q it has %d MiB, and there is room for %d MiB",
			h.Name, (r.digest.Bytes+h.Size)>>20, max(r.limit, 0)>>20)
	}
	r.digest.begin(h.Typeflag, h.Name, "", h.Mode, h.Size)
	out, err := r.to.file(h)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.MultiWriter(out, r.digest, sum), r.tar)
	if err = errors.Join(err, out.Close()); err == nil && n == h.Size {
		return nil
	}
	if _, write := errors.AsType[*fs.PathError](err); write {
		return err
	}
	return damaged("%q cannot be read: %w", h.Name, err)
}

// nothing is the sink of a check.
type nothing struct{}

func (nothing) file(*tar.Header) (io.WriteCloser, error) { return discard{io.Discard}, nil }
func (nothing) dir(*tar.Header) error                    { return nil }
func (nothing) link(*tar.Header) error                   { return nil }

type discard struct{ io.Writer }

func (discard) Close() error { return nil }
